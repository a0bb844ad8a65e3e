"""`placement-ac status`: each AdmissionCheck with its clusters, queues and Workloads."""
