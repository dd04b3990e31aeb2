# Projects without a server of their own send through the one of the defaults block.
defaults {
  smtp_config {
    host        = "relay.example"
    username    = "relay"
    password    = env("RELAY_PASSWORD")
    tls_enabled = true
    ca_file     = "tls/ca.pem"
  }
}

project "sender" {
  name = "Sender"
  smtp_config {
    from_email = "hello@sender.example"
    from_name  = "Sender"
    reply_to   = "help@sender.example"
  }
}

project "off" {
  name = "Off"
  smtp_config { active = false }
}

project "plain" {
  name = "Plain"
}
