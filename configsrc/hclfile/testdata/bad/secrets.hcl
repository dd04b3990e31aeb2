project "acme" {
  name = "Acme"
  auth_settings {
    jwt_secret = sealed("not base64!")  # ERROR: base64 on one line
  }
  smtp_config {
    host       = "h.example"
    from_email = "a@b.example"
    username   = "u"
    password   = env("A-B")             # ERROR: letters, digits and underscores
  }
}

project "b" {
  name = "B"
  auth_settings {
    jwt_secret = file("../x")           # ERROR: leads out of the folder
  }
  smtp_config {
    host       = "h.example"
    from_email = "a@b.example"
    username   = "u"
    password   = ""                     # ERROR: must not be empty
  }
}

project "c" {
  name = "C"
  auth_settings {
    jwt_secret = sealed("eA==", "eA==") # ERROR: sealed() takes one string
  }
  smtp_config {                         # ERROR: attribute "username" is missing
    host       = "h.example"
    from_email = "a@b.example"
    password   = "****"                 # ERROR: asterisks only # WARNING: clear text
  }
}

project "d" {
  name = "D"
  auth_settings {
    jwt_secret = file("/etc/passwd")    # ERROR: not absolute
  }
  smtp_config {
    host       = "h.example"
    from_email = "a@b.example"
    username   = "u"
    password   = env(NAME)              # ERROR: env() takes a string
  }
}
