# Logins by OAuth 2.0.
project "a" {
  name = "A"
  smtp_config {                          # ERROR: attribute "oauth_client_id" is missing # ERROR: attribute "oauth_client_secret" is missing
    host            = "h.example"
    from_email      = "a@b.example"
    username        = "u"
    auth            = "xoauth2"
    oauth_token_url = "http://127.0.0.1/"  # ERROR: must begin with https
  }
}

project "b" {
  name = "B"
  smtp_config {
    host                = "h.example"
    from_email          = "a@b.example"
    username            = "u"
    auth                = "xoauth"         # ERROR: must be one of plain, login, cram-md5, xoauth2
    oauth_token_url     = "login.example"  # ERROR: must be an address
    oauth_client_id     = "a\nb"           # ERROR: no control characters
    oauth_client_secret = "***"            # ERROR: asterisks only # WARNING: clear text
  }
}

project "c" {
  name = "C"
  smtp_config {
    host            = "h.example"
    from_email      = "a@b.example"
    auth            = "plain"              # WARNING: is not used
    oauth_token_url = "https://login.example/token"
  }
}
