"""The engines that run the stages: Spark, or processes of one machine."""
