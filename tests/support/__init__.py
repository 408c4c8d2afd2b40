"""What tests of several rooms share: small inline recordings."""
