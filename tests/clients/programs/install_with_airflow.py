"""Airflow: the operator that installs Kueue, with a manifest of ours instead of a downloaded one."""

import sys
from pathlib import Path
from unittest.mock import patch

import yaml
from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook
from airflow.providers.cncf.kubernetes.operators.kueue import KubernetesInstallKueueOperator

MANIFEST = list(yaml.safe_load_all(Path(sys.argv[1]).read_text()))

operator = KubernetesInstallKueueOperator(task_id="kueue", kueue_version="v0", kubernetes_conn_id=None)
with patch.object(KubernetesHook, "get_yaml_content_from_file", return_value=MANIFEST):
    operator.execute({})
