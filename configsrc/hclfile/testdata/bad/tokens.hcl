project "acme" {
  name = "Acme"
  auth_settings {
    jwt_algorithms = ["HS256", "none"] # ERROR: must be one of HS256, RS256, ES256, EdDSA
  }
}

project "b" {
  name = "B"
  auth_settings {
    jwt_algorithms = ["RS256", "RS256"] # ERROR: is in the list twice
    jwks_url       = "http://login.acme.example/jwks" # ERROR: http is for an IP address in a network that --jwks-allow names
  }
}

project "c" {
  name = "C"
  auth_settings {
    jwt_algorithms = [] # ERROR: is empty
    jwt_issuer     = "" # ERROR: must have 1 to 1024 bytes
    jwt_audience   = ["a"] # ERROR: wants a string
  }
}

project "d" {
  name = "D"
  auth_settings {
    jwt_algorithms = ["ES256"]
    jwt_keys = [
      file("/etc/key.pem"), # ERROR: must be relative
      env("KEY"),           # ERROR: env() cannot stand here
      "file(\"a.pem\")",    # ERROR: without quotes
    ]
    jwks_url = "https://login.acme.example/jwks"
  }
}

project "e" {
  name = "E"
  auth_settings {
    jwt_algorithms = ["ES256"]
    jwt_keys       = [file("a.pem")]
    jwks_url       = "https://login.acme.example/jwks" # ERROR: exclude each other
  }
}

project "f" {
  name = "F"
  auth_settings {
    jwt_keys = ["x"] # ERROR: is not used
  }
}

project "h" {
  name = "H"
  auth_settings {
    jwt_algorithms = ["RS256"]
    jwt_keys       = ["x"] # ERROR: entry 1 is neither PEM nor a JWK
  }
}

project "g" {
  name = "G"
  auth_settings {
    jwt_algorithms = ["RS256"] # ERROR: needs jwt_keys or jwks_url
  }
}
