"""Online Newton learners beside their peers."""
