package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// marks track each mail from its sender to the sink: a mail has its own number in its recipient, its subject and both
// of its parts. Safe for concurrent use.
type marks struct {
	mu      sync.Mutex  // guards all below
	due     map[int]int // by number: 1 for a mail that must arrive once
	arrived map[int]int // by number: how often it came
	checked int         // mails that were found at the sink, each once and complete
	fault   error       // the first mail that differs from what was sent
}

func newMarks() *marks { return &marks{due: map[int]int{}, arrived: map[int]int{}} }

const (
	markDigits   = 9
	markDomain   = "@customer.example"
	timesInMail  = 4 // To, Subject, text and HTML
	recitedTimes = 24
)

// recital is the part of each body that is the same in all mails: lines that no transfer encoding changes.
var recital = strings.Repeat("The goods leave our house today: whoever waits need not wait long.\r\n", recitedTimes)

// mark is what stands in mail n.
func mark(n int) string { return fmt.Sprintf("m%0*d", markDigits, n) }

// markedNumber returns n from a recipient, or -1.
func markedNumber(rcpt string) int {
	digits, ok := strings.CutSuffix(rcpt, markDomain)
	if n, err := strconv.Atoi(strings.TrimPrefix(digits, "m")); ok && err == nil && digits == mark(n) {
		return n
	}
	return -1
}

// arrive records a mail as the sink has received it.
func (m *marks) arrive(rcpt string, message []byte) {
	err := judgeMail(rcpt, message)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.arrived[markedNumber(rcpt)]++
	} else if m.fault == nil {
		m.fault = err
	}
}

// judgeMail returns an error if the mail differs from the expected form.
func judgeMail(rcpt string, message []byte) error {
	local, _, _ := strings.Cut(rcpt, "@")
	switch n := bytes.Count(message, []byte(local)); {
	case markedNumber(rcpt) < 0:
		return fmt.Errorf("a mail for %q, who is nobody's customer", rcpt)
	case n != timesInMail:
		return fmt.Errorf("the mail for %q has its mark in %d places, not in %d", rcpt, n, timesInMail)
	case !bytes.Contains(message, []byte("Subject: Order "+local)):
		return fmt.Errorf("the mail for %q has not its subject", rcpt)
	case bytes.Count(message, []byte(recital)) != 2:
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
	m.due[n]++
}

// check compares the mails reported as sent since the last check with those that have arrived. No mail may be sent
// during the call.
func (m *marks) check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	for _, numbers := range []map[int]int{m.due, m.arrived} {
		for n := range numbers {
			if m.due[n] != m.arrived[n] || m.due[n] != 1 {
				return fmt.Errorf("mail %d was reported as sent %d times and came %d times", n, m.due[n], m.arrived[n])
			}
		}
	}
	m.checked += len(m.due)
	clear(m.due)
	clear(m.arrived)
	return nil
}
