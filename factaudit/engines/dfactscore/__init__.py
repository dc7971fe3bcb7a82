"""Which facts are true alone and false together? D-FActScore (MF: Chiang & Lee 2024)"""
