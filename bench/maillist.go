package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"fingerpost/bench/mailsink"
	"fingerpost/resolver/catalog"
)

// withLongList alternates, on one server, sends of a project with a long suppression list and of one without a list. No
// recipient of a send is listed, and the addresses of the list lie between theirs.
func (m *mailBench) withLongList(ctx context.Context, rep *report) error {
	const name, long, empty = "mail-list", "long-list", "no-list"
	if err := m.clearStore(name); err != nil {
		return err
	}
	s, err := m.startMail(ctx, name, map[string]string{long: m.clear.Addr, empty: m.clear.Addr})
	if err != nil {
		return err
	}
	defer s.stop()
	m.say("putting %d addresses onto a suppression list", m.mail.listed)
	if err := s.fillList(ctx, long, m.mail.listed); err != nil {
		return fmt.Errorf("fill the suppression list: %w", err)
	}
	unix.Sync()
	turnOf := func(name, slug string) *turn {
		return m.sending(name, m.clear, load{side: m.calls(s, slug, m.clear), workers: m.connections})
	}
	none, listed := turnOf("no list", empty), turnOf("a long list", long)
	if err := m.alternate(ctx, none, listed); err != nil {
		return err
	}
	title := func(what string) string {
		return fmt.Sprintf("a suppression list of %d addresses: %s", m.mail.listed, what)
	}
	rep.add(
		listed.against(none, perSecond, title("raw sends"), "mails/s"),
		listed.against(none, "p50", title("latency p50"), "ms"),
		listed.against(none, "p99", title("latency p99"), "ms"),
		listed.against(none, cpuEach, title("CPU"), "µs/mail").ratioAtMost(1.05),
	)
	rep.note("The list was filled over the API. Sends to its first, middle and last address were stopped; the " +
		"sends that are measured go to addresses that are not on it, both projects' on one server.")
	return nil
}

// listedAddress is an address of the list, next to the recipient of mail n.
func listedAddress(n int) string { return mailsink.Mark(n) + ".listed" + mailsink.Domain }

// fillList puts n addresses onto the suppression list of a project, and makes sure that it stops mail.
func (s mailServer) fillList(ctx context.Context, slug string, n int) error {
	cl := s.client()
	defer cl.Close()
	project := catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug))
	path := fmt.Sprintf("/api/mail/projects/%d/suppressions", project)
	for from := 1; from <= n; from += catalog.MaxSuppressionsAtOnce {
		var rows []string
		for i := from; i <= min(n, from+catalog.MaxSuppressionsAtOnce-1); i++ {
			rows = append(rows, fmt.Sprintf(`{"address":%q,"reason":"hard_bounce"}`, listedAddress(i)))
		}
		a, err := cl.Call("POST", path, []byte(`{"suppressions":[`+strings.Join(rows, ",")+`]}`))
		if err == nil && a.Status != 201 {
			err = fmt.Errorf("status %d: %s", a.Status, a.Body)
		}
		if err := errors.Join(ctx.Err(), err); err != nil {
			return err
		}
	}
	for _, i := range []int{1, n/2 + 1, n} {
		body := bytes.Replace(sendBody(slug, i), []byte(mailsink.Mark(i)+mailsink.Domain), []byte(listedAddress(i)), 1)
		a, err := cl.Must("POST", "/api/mail/send/raw", body)
		if err == nil && !bytes.Contains(a.Body, []byte(`"suppressed":true`)) {
			err = fmt.Errorf("a send to %s is answered %s", listedAddress(i), a.Body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
