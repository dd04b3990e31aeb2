package authdns

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"fingerpost/configsrc/verify/dcv"
	"github.com/miekg/dns"
)

// maxStrays is the number of datagrams to other questions after which a server is given up.
const maxStrays = 100

const nameTooLong = "the name is too long"

// fits reports whether DNS has room for a name, with its trailing dot.
func fits(name string) bool {
	_, ok := dns.IsDomainName(name)
	return ok && len(name) <= 254
}

// turn waits until one more question may be asked. The caller calls the function when the answer has come.
func (s *session) turn() (done func(), err error) {
	done, err = s.open.Take(s.ctx, s.tenant)
	if err != nil {
		return nil, err
	}
	if err := s.turns.Wait(s.ctx, s.tenant); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// exchange asks one server once. zone is "" for the resolver.
func (s *session) exchange(at netip.AddrPort, q question, zone string, edns bool) reply {
	id := dns.Id()
	packet, err := q.message(id, edns)
	if err != nil || !fits(q.name) { // the library sends longer names, too
		return reply{err: nameTooLong}
	}
	done, err := s.turn()
	if err != nil {
		return reply{err: dcv.TimedOut}
	}
	defer done()
	d := &net.Dialer{}
	if zone != "" { // the operator names the resolver, others the servers of zones
		d.Control = s.guard.Control
	}
	m, word := s.trip(s.ctx, d, "udp", at, q, packet, id)
	if m != nil && m.Truncated {
		if s.turns.Wait(s.ctx, s.tenant) != nil {
			return reply{err: dcv.TimedOut}
		}
		if m, word = s.trip(s.ctx, d, "tcp", at, q, packet, id); m != nil && m.Truncated {
			word = "malformed"
		}
	}
	if word != "" {
		return reply{err: word}
	}
	return q.read(m, zone)
}

// trip sends a question and returns the answer to it, or why none came, within half of the limit: there may be a second
// attempt.
func (c *Checker) trip(
	ctx context.Context, d *net.Dialer, network string, at netip.AddrPort, q question, packet []byte, id uint16,
) (*dns.Msg, string) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Limit/2)
	defer cancel()
	conn, err := d.DialContext(ctx, network, at.String())
	if err != nil {
		return nil, wordOf(err)
	}
	defer conn.Close()
	// The end of the context ends reading, too; its deadline is that of all reads together, however slowly bytes come.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	receive := receiveDatagram
	if network == "tcp" {
		packet = append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...)
		receive = receiveStream
	}
	if _, err := conn.Write(packet); err != nil {
		return nil, wordOf(err)
	}
	for strays := 0; ; strays++ {
		answer, err := receive(conn)
		switch m, ours := q.parse(answer, id); {
		case err != nil && strays == 0:
			return nil, wordOf(err)
		case err != nil || strays == maxStrays:
			return nil, "wrong id"
		case ours && m == nil:
			return nil, "malformed"
		case ours:
			return m, ""
		}
	}
}

func receiveDatagram(conn net.Conn) ([]byte, error) {
	b := make([]byte, 4096) // more than was offered; a longer one is cut, and cannot be read
	n, err := conn.Read(b)
	return b[:n], err
}

func receiveStream(conn net.Conn) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(conn, b)
	return b, err
}

// wordOf says why no answer came.
func wordOf(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled), errors.As(err, &timeout) && timeout.Timeout():
		return dcv.TimedOut
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "hung up"
	}
	return "unreachable"
}
