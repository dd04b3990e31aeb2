project "one" {
  name = "One"
  uuid = "11111111-2222-4333-8444-555555555555"
  id   = 42

  domain "a.example" {}
  domain "b.example" {
    uuid = "aaaaaaaa-2222-4333-8444-555555555555"
    id   = 7
  }

  auth_settings {
    uuid = "bbbbbbbb-2222-4333-8444-555555555555"
  }
}

project "two" {
  name = "Two"
  uuid = "new"
}

project "three" {
  name = "Three"
  domain "c.example" { id = 42 }
}
