"""Independent slow implementations that the tests compare with."""
