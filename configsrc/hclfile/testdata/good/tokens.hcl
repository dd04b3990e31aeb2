defaults {
  auth_settings {
    jwt_algorithms = ["RS256"]
    jwks_url       = "https://login.acme.example/jwks"
  }
}

project "acme" {
  name = "Acme"
  auth_settings {
    jwt_algorithms = ["HS256", "EdDSA"]
    jwt_keys       = [file("keys/2026.pem"), "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}"]
    jwt_issuer     = "https://login.acme.example/"
    jwt_audience   = null
    jwks_url       = null
  }
}
