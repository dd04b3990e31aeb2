// Package webhook delivers events to receivers: what the audit trail has an entry of, and the ends of mails.
//
// # What it promises
//
// Each event is delivered at least once to each webhook that wants it, whatever happens to the process in between, and
// with the same id and body at each attempt. Events of one project reach a webhook in their order: a delivery that
// fails holds back the later events of its project at this webhook, and nothing else. Each request is signed with all
// secrets of the webhook (Standard Webhooks 1.0). A slow or silent receiver delays no other one: it has a bounded
// number of requests on the wire, and each webhook has a place that no other can take. A receiver that refuses for
// days, or says 410, is switched off, and goes on where it was once a person resumes it. What retention has removed
// before it was delivered is told as a gap. A webhook that is new, or was switched on by a person, gets what happens
// from then on.
//
// # What it needs
//
// The trail and the mail log are the queue: nothing is stored for each event and webhook. The ledger keeps how far each
// webhook has come, the projects that wait, and the deliveries of the last days (package records). Hooks gives the
// webhooks as the files declare them, with their secrets in clear text. One Engine runs, on the node that writes.
//
// # How it works
//
// One goroutine, Run, has all state. In each turn it reads what is new, gives it to the webhooks, stores what has
// changed in one durable batch, and begins the requests that are due; their results come back to it. A project of which
// something is to be delivered has a lane at the webhook, with the delivery that is next. The cursor of the webhook
// goes on past it, and the lane finds the project's later events in the index of the trail.
//
// # What it does not do
//
// It follows no redirects, keeps no cookies, asks no proxy, and connects only to addresses that a publicnet.Guard
// allows, with TLS 1.2 or later. It does not declare webhooks, rotate secrets or judge settings. It does not tell what
// has become of a request that it has cut off: the receiver may have had it, and gets it again.
package webhook
