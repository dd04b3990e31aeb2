package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"fingerpost/configsrc/cluster/natsd"
)

// MinServer is the oldest version of nats-server that the tests run against. Older ones are refused.
const MinServer = "2.15.2"

// Connection says how to reach NATS.
type Connection struct {
	URLs    []string
	Creds   string // file of credentials, or with the seed of an nkey; "": none
	KeyFile string // file with the seed of an nkey; "": none
	CA      string // PEM file of a private CA that servers are trusted from; "": the system's
	Cert    string // PEM file of a client certificate; "": none
	Key     string // its private key

	seed   []byte              // in the place of KeyFile, for the supervised server
	dialer nats.CustomDialer   // for tests
	inbox  string              // prefix of reply subjects
	edge   bool                // the server carries answers from the account of the authority
	name   string              // as the server's operator sees it
	failed func(problem error) // called when the connection fails or is refused; it must return at once
	up     func()              // called when it is established, again too
}

// ConnectionTo is how the authority reaches its supervised server, wherever that listens after a restart.
func ConnectionTo(s *natsd.Supervisor) Connection {
	return Connection{URLs: []string{"nats://" + s.Addr()}, seed: s.Seed(), dialer: s}
}

// Check reads the files and returns everything that is wrong with them.
func (c *Connection) Check() (problems []string) {
	if c.KeyFile != "" {
		if _, err := nats.NkeyOptionFromSeed(c.KeyFile); err != nil {
			problems = append(problems,
				fmt.Sprintf("key file %s: %v; it must hold the seed that \"fingerpost edges keygen\" has printed, which begins "+
					"with SU", c.KeyFile, err))
		}
	}
	if _, err := c.credentials(); err != nil {
		problems = append(problems, err.Error())
	}
	if c.CA != "" && len(problems) == 0 {
		if _, err := c.tls(); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if c.Cert != "" {
		if _, err := tls.LoadX509KeyPair(c.Cert, c.Key); err != nil {
			problems = append(problems, fmt.Sprintf("certificate %s: %v", c.Cert, err))
		}
	}
	return problems
}

// credentials returns nil without Creds.
func (c *Connection) credentials() (nats.Option, error) {
	if c.Creds == "" {
		return nil, nil
	}
	b, err := os.ReadFile(c.Creds)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(b, []byte("BEGIN NATS USER JWT")) {
		return nats.UserCredentials(c.Creds), nil
	}
	option, err := nats.NkeyOptionFromSeed(c.Creds)
	if err != nil {
		return nil, fmt.Errorf("%s holds neither credentials of NATS, with a JWT, nor the seed of an nkey, which begins "+
			"with SU: %w", c.Creds, err)
	}
	return option, nil
}

// tls returns nil where the URLs decide.
func (c *Connection) tls() (*tls.Config, error) {
	if c.CA == "" && c.Cert == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, err
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM form", c.CA)
		}
	}
	if c.Cert != "" {
		// Read at every handshake, so that a renewed certificate is used without a restart.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
			return &pair, err
		}
	}
	return config, nil
}

// errKeyRefused explains the answer of a server that does not let a node in.
var errKeyRefused = errors.New("the NATS server refuses the key (authorization violation): do the files declare " +
	"this edge, with the public half of this key?")

// connect connects, and keeps trying for ever. Publishes fail at once while there is no connection: nothing is queued.
func (c *Connection) connect() (*nats.Conn, error) {
	fail := func(err error) {
		if err == nil || c.failed == nil {
			return
		}
		if errors.Is(err, nats.ErrAuthorization) || strings.Contains(strings.ToLower(err.Error()),
			"authorization violation") {
			err = errKeyRefused
		}
		if strings.Contains(err.Error(), "remote error: tls:") || strings.Contains(err.Error(), "after TLS handshake") {
			err = fmt.Errorf("the NATS server refuses the certificate of this node, or wants one (--tls-cert): %w", err)
		}
		c.failed(err)
	}
	options := []nats.Option{
		nats.Name(c.name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.ReconnectWait(200 * time.Millisecond), nats.ReconnectJitter(200*time.Millisecond, 500*time.Millisecond),
		nats.Timeout(answerTime), nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2),
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err == nil {
				err = errors.New("the connection to NATS is closed")
			}
			fail(err)
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { fail(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { fail(err) }),
	}
	up := func(*nats.Conn) {
		if c.up != nil {
			c.up()
		}
	}
	options = append(options, nats.ConnectHandler(up), nats.ReconnectHandler(up))
	if c.inbox != "" {
		options = append(options, nats.CustomInboxPrefix(c.inbox))
	}
	if c.edge {
		// An inbox for each request: the server keeps what it needs for further answers until the inbox is gone, 2 minutes
		// and some hundred bytes for each read otherwise.
		options = append(options, nats.UseOldRequestStyle())
	}
	if c.dialer != nil {
		options = append(options, nats.SetCustomDialer(c.dialer))
	}
	switch {
	case c.seed != nil:
		public, sign, err := seedOption(c.seed)
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Nkey(public, sign))
	case c.KeyFile != "":
		option, err := nats.NkeyOptionFromSeed(c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read key file %s: %w", c.KeyFile, err)
		}
		options = append(options, option)
	}
	credentials, err := c.credentials()
	if err != nil {
		return nil, err
	}
	if credentials != nil {
		options = append(options, credentials)
	}
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	if config != nil {
		options = append(options, nats.Secure(config))
	}
	nc, err := nats.Connect(strings.Join(c.URLs, ","), options...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return nc, nil
}

// bucket connects, and returns a cluster's bucket there.
func (c *Connection) bucket(cluster string) (*bucket, error) {
	nc, err := c.connect()
	if err != nil {
		return nil, err
	}
	b, err := newBucket(nc, cluster)
	if err != nil {
		nc.Close()
	}
	return b, err
}

// checkVersion refuses a server that is older than MinServer.
func checkVersion(nc *nats.Conn) error {
	have := nc.ConnectedServerVersion()
	if have == "" {
		return nats.ErrConnectionReconnecting
	}
	if older(have, MinServer) {
		return &VersionError{Server: nc.ConnectedServerName(), Have: have}
	}
	return nil
}

// A VersionError says that a NATS server is older than MinServer.
type VersionError struct{ Server, Have string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("NATS server %s has version %s, older than %s, the oldest that fingerpost is tested with: "+
		"update it", e.Server, e.Have, MinServer)
}

// errPayload: a file would not fit into a message of the server.
var errPayload = errors.New("the NATS server takes too small messages")

// checkPayload refuses a server whose largest message is below that of the built-in one, into which every file fits.
func checkPayload(nc *nats.Conn) error {
	if have := nc.MaxPayload(); nc.IsConnected() && have < natsd.MaxPayload {
		return fmt.Errorf("%w: %d bytes at most, and files need %d: add the line \"max_payload: 8MB\" to its configuration",
			errPayload, have, natsd.MaxPayload)
	}
	return nil
}

func older(have, min string) bool {
	a, b := versionOf(have), versionOf(min)
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func versionOf(text string) (v [3]int) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "-")
	for i, part := range strings.SplitN(text, ".", 3) {
		v[i], _ = strconv.Atoi(part)
	}
	return v
}

// seedOption returns the public key of a seed, and how it signs.
func seedOption(seed []byte) (public string, sign nats.SignatureHandler, err error) {
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return "", nil, err
	}
	if public, err = pair.PublicKey(); err != nil {
		return "", nil, err
	}
	return public, pair.Sign, nil
}
