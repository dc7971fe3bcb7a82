"""Where is the experiment that comes with factaudit? It audits four detectors on RAGTruth, and its
data are in the folder ``demo``."""

from pathlib import Path

#: The name by which `factaudit run` finds the experiment.
DEMO_NAME = "demo"
DEMO_EXPERIMENT = Path(__file__).with_name("demo") / "ragtruth.yaml"
