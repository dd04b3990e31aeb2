package main

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
)

// marks track each mail from its sender to the sink: a mail has its own number in its recipient, its subject and both
// of its parts. Safe for concurrent use.
type marks struct {
	mu      sync.Mutex // guards all below
	due     []byte     // by number: 1 for a mail that must arrive once; check shortens it
	arrived []byte     // by number: how often it came
	first   int        // the first number in due and arrived: lower ones were checked
	total   int        // mails that were checked
	fault   error      // the first mail that differs from what was sent
}

const (
	markDigits   = 9
	markDomain   = "@customer.example"
	timesInMail  = 4 // To, Subject, text and HTML
	recitedLine  = "The goods leave our house today: whoever waits need not wait long."
	recitedTimes = 24 // in a body
	recitedBytes = recitedTimes * (len(recitedLine) + 2)
)

// mark is what stands in mail n.
func mark(n int) string { return fmt.Sprintf("m%0*d", markDigits, n) }

// markedNumber returns n from a recipient, or -1.
func markedNumber(rcpt []byte) int {
	digits, ok := bytes.CutSuffix(rcpt, []byte(markDomain))
	if !ok || len(digits) != 1+markDigits || digits[0] != 'm' {
		return -1
	}
	n, err := strconv.Atoi(string(digits[1:]))
	if err != nil {
		return -1
	}
	return n
}

// recital is the part of each body that is the same in all mails: lines that no transfer encoding changes.
var recital = func() []byte {
	b := make([]byte, 0, recitedBytes)
	for range recitedTimes {
		b = append(append(b, recitedLine...), "\r\n"...)
	}
	return b
}()

// arrive records a mail as the sink has received it, without dot-stuffing and the final dot.
func (m *marks) arrive(rcpt, message []byte) {
	n := markedNumber(rcpt)
	wrong := judgeMail(rcpt, message)
	m.mu.Lock()
	defer m.mu.Unlock()
	if wrong == nil && n < m.first {
		wrong = fmt.Errorf("mail %d came again, or although it was not sent", n)
	}
	if wrong != nil {
		if m.fault == nil {
			m.fault = wrong
		}
		return
	}
	m.arrived = grown(m.arrived, n-m.first)
	m.arrived[n-m.first]++
}

// judgeMail returns an error if the mail differs from the expected form.
func judgeMail(rcpt, message []byte) error {
	local, _, _ := bytes.Cut(rcpt, []byte("@"))
	switch {
	case markedNumber(rcpt) < 0:
		return fmt.Errorf("a mail for %q, who is nobody's customer", rcpt)
	case bytes.Count(message, local) != timesInMail:
		return fmt.Errorf("the mail for %q has its mark in %d places, not in %d", rcpt, bytes.Count(message, local), timesInMail)
	case !bytes.Contains(message, append([]byte("Subject: Order "), local...)):
		return fmt.Errorf("the mail for %q has not its subject", rcpt)
	case bytes.Count(message, recital) != 2:
		return fmt.Errorf("the mail for %q has not the whole text in both parts", rcpt)
	case !bytes.HasSuffix(message, []byte("--\r\n")):
		return fmt.Errorf("the mail for %q was cut off", rcpt)
	}
	return nil
}

// sent records that mail n was reported as sent.
func (m *marks) sent(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.due = grown(m.due, n-m.first)
	m.due[n-m.first] = 1
}

// grown returns b, extended so that index exists.
func grown(b []byte, index int) []byte {
	if missing := index + 1 - len(b); missing > 0 {
		b = append(b, make([]byte, missing)...)
	}
	return b
}

// check compares the mails reported as sent with those that have arrived, for all numbers below next. No mail may be
// sent during the call.
func (m *marks) check(next int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	count := next - m.first
	m.due, m.arrived = grown(m.due, count-1), grown(m.arrived, count-1)
	if len(m.due) > count || len(m.arrived) > count {
		return fmt.Errorf("a mail has a number that was not given out yet (%d is the next)", next)
	}
	for i := range m.due {
		if m.arrived[i] != m.due[i] {
			return fmt.Errorf("mail %d was reported as sent %d times and came %d times", m.first+i, m.due[i], m.arrived[i])
		}
		m.total += int(m.due[i])
	}
	m.first, m.due, m.arrived = next, m.due[:0], m.arrived[:0]
	return nil
}

// checked returns how many mails were found at the sink, each once and complete.
func (m *marks) checked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}
