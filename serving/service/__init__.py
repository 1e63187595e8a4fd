"""The retrieval service: gRPC and HTTP in front of a release that can be exchanged under load."""
