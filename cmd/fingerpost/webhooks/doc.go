// Package webhooks is the command "fingerpost webhooks": who is told what changed, and what has become of it.
//
//   - list, add, remove, rotate: the webhooks that the files of a running server declare;
//   - test, deliveries, resume, replay: what its receivers were sent.
//
// All of them call the API, with a key that has write and secrets on every project. No call is repeated by itself: a
// secret is answered once, and an event that is sent again twice is not what was asked for. This package decides nothing
// about a webhook.
package webhooks
