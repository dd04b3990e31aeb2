package mailer_test

import "fingerpost/cmd/testrig"

const sinkUser = "hello@acme.example"

// requireLogin gives a sink an account.
func requireLogin(k *testrig.Sink, password string) {
	k.Set(func(r *testrig.SinkRules) { r.User, r.Password = sinkUser, password })
}

// refusingPort is a port at which nobody listens. The system gives ports below 1024 to nobody who asks for any port, so
// it cannot become the port of another sink, as the port of a closed one can.
const refusingPort = 1

var (
	errGreylisted = testrig.Refusal(451, 4, 7, 1, "come back later")
	errRejected   = testrig.Refusal(554, 5, 6, 0, "we do not like it")
	errNobody     = testrig.Refusal(550, 5, 1, 1, "no such user")
)
