# An smtp_config of the defaults block, and blocks of projects without a host.
defaults {
  smtp_config {                                       # ERROR: attribute "host" is missing
    uuid       = "11111111-2222-4333-8444-555555555555"  # ERROR: unknown attribute "uuid"
    port       = 0                                    # ERROR: must be from 1 to 65535
    from_email = "Hello <a@relay.example>"            # ERROR: from_email:
    ca_file    = "../ca.pem"                          # ERROR: leads out of the folder
  }
  smtp_config { host = "relay.example" }              # ERROR: the defaults block has one smtp_config block only
}

project "empty" {
  name = "x"
  smtp_config {}                # ERROR: attribute "host" is missing # ERROR: attribute "from_email" is missing
}

project "server" {
  name = "x"
  smtp_config {                 # ERROR: attribute "host" is missing
    username   = "u"
    from_email = "a@b.example"
  }
}

project "sender" {
  name = "x"
  smtp_config {
    from_email = "nobody"       # ERROR: from_email:
    reply_to   = "nobody"       # ERROR: reply_to:
    from_name  = "a\nb"         # ERROR: from_name:
  }
}

project "wrong" {
  name = "x"
  smtp_config {                 # ERROR: attribute "from_email" is missing
    host   = ""                 # ERROR: host:
    active = true
  }
}
