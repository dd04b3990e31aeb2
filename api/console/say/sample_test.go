package say_test

import (
	"testing"

	"fingerpost/api/console/say"
)

func TestSample(t *testing.T) {
	t.Parallel()
	f := func(variable, want string) {
		t.Helper()
		if got := say.Sample(variable); got != want {
			t.Errorf("%s: %q, want %q", variable, got, want)
		}
	}
	f("userName", "Ada Lovelace")
	f("contact_email", "ada@example.com")
	f("resetUrl", "https://example.com/")
	f("OTP", "483920")
	f("colour", "colour")
	f("", "")
}
