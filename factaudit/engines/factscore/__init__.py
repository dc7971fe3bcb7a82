"""What share of a text's atomic facts does a knowledge source support? FActScore (Min et al. 2023)"""
