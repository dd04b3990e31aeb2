version = 1                       # ERROR: a file holds blocks only: project, template, defaults, key, edge, webhook, login, inbound, sealing
proyect "a" {}                    # ERROR: did you mean `project`?
domain "a.example" {}             # ERROR: it stands inside a project block
smtp_config {}                    # ERROR: it stands inside a project block or inside a defaults block
whatever {}                       # ERROR: a file may hold the blocks

project "acme" {
  name      = "Acme"
  descripton = "x"                # ERROR: did you mean `description`?
  Status    = "ACTIVE"            # ERROR: did you mean `status`?
  host      = "x"                 # ERROR: it belongs into smtp_config
  foobar    = 1                   # ERROR: a project block has name, description, status, labels, owner, uuid, id
  service_settings = {            # ERROR: "service_settings" is a block
  }
  domains "a.example" {}          # ERROR: did you mean `domain`?
  description {}                  # ERROR: "description" is an attribute
  key "k" {}                      # ERROR: it stands outside all other blocks
  domain "b.example" {
    primry = true                 # ERROR: did you mean `primary`?
    smtp_config {}                # ERROR: a smtp_config block cannot stand here
  }
  smtp_config {
    host       = "h.example"
    fromEmail  = "a@b.example"    # ERROR: did you mean `from_email`?
    from_email = "a@b.example"
    passwrd    = "hunter2"        # ERROR: did you mean `password`?
  }
}

defaults {
  name = "x"                      # ERROR: it belongs into project or template
  domain "d.example" {}           # ERROR: it stands inside a project block
  auth_settings {
    uuid = "11111111-2222-4333-8444-555555555555"  # ERROR: unknown attribute "uuid"
  }
}
