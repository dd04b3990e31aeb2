package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"fingerpost/configsrc/cluster/natsd"
	"fingerpost/resolver/catalog"
)

// format is the format of the bucket. A node refuses a bucket of a later one.
const format = 1

// metadataFormat is the key of the bucket's metadata that has the format.
const metadataFormat = "fingerpost.format"

// Bucket returns the name of a cluster's bucket.
func Bucket(cluster string) string { return "fingerpost_" + cluster }

// stream is the stream that NATS keeps the bucket in.
func stream(cluster string) string { return "KV_" + Bucket(cluster) }

func newsSubject(cluster string) string          { return "fingerpost." + cluster + ".news" }
func beatSubject(cluster, edge string) string    { return "fingerpost." + cluster + ".beat." + edge }
func forwardSubject(cluster, edge string) string { return "fingerpost." + cluster + ".forward." + edge }

// Grants are what the edges of a cluster may use of a NATS server.
func Grants(cluster string) natsd.Grants {
	return natsd.Grants{
		Services: []natsd.Service{
			{Subject: "$JS.API.STREAM.INFO." + stream(cluster)},
			{Subject: directGet(cluster), Response: "stream"},
			{Subject: strings.TrimSuffix(beatSubject(cluster, ""), "."), Named: true},
			{Subject: strings.TrimSuffix(forwardSubject(cluster, ""), "."), Named: true, Response: "stream"},
		},
		News: newsSubject(cluster), Inbox: inboxOf(""),
	}
}

// A marker ends a generation.
type marker struct {
	Position string `json:"position"`
	Files    int    `json:"files"`
	Root     string `json:"root"`

	position catalog.Position // of Position
	seq      uint64
}

func parseMarker(value []byte) (m marker, err error) {
	if err := json.Unmarshal(value, &m); err != nil {
		return m, fmt.Errorf("the marker cannot be read: %w", err)
	}
	if m.position, err = catalog.ParsePosition(m.Position); err != nil {
		return m, fmt.Errorf("the marker cannot be read: %w", err)
	}
	return m, nil
}

// Errors that an operator has to solve.
var (
	errNoBucket = errors.New("there is no such bucket: has the authority been started, and is --cluster-name its name?")
	errForeign  = errors.New("the bucket was not made by fingerpost: give the cluster another --cluster-name, or " +
		"delete the bucket")
)

// A bucket is a cluster's bucket on a NATS server.
type bucket struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	cluster string
	prefix  string // of subjects
}

func newBucket(nc *nats.Conn, cluster string) (*bucket, error) {
	js, err := jetstream.New(nc)
	return &bucket{nc: nc, js: js, cluster: cluster, prefix: "$KV." + Bucket(cluster) + "."}, err
}

// answerTime is how long the server may take to answer.
const answerTime = 5 * time.Second

// whileConnected returns a context that ends with the connection, by nats.ErrDisconnected: what was asked on it gets no
// answer on the next one, and waiting for answerTime would keep an edge behind for that long.
func whileConnected(ctx context.Context, nc *nats.Conn) (connected context.Context, stop func()) {
	connected, cancel := context.WithCancelCause(ctx)
	lost := nc.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	go func() {
		select {
		case <-lost:
			cancel(nats.ErrDisconnected)
		case <-connected.Done():
		}
	}()
	return connected, func() {
		cancel(nil)
		nc.RemoveStatusListener(lost)
	}
}

// orCause is err, or why ctx has ended if that made it.
func orCause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), nats.ErrDisconnected) {
		return nats.ErrDisconnected
	}
	return err
}

// A bucketState says which bucket it is and where its stream ends.
type bucketState struct {
	created time.Time // another one: the bucket was made anew
	last    uint64    // sequence
	asked   time.Time // by the clock of the server
	batches bool      // it takes atomic batches
}

// state checks that the bucket is one of ours.
func (b *bucket) state(ctx context.Context) (st bucketState, err error) {
	connected, stop := whileConnected(ctx, b.nc)
	defer stop()
	wait, cancel := context.WithTimeout(connected, answerTime)
	defer cancel()
	s, err := b.js.Stream(wait, stream(b.cluster)) // asks for the state, too
	err = orCause(connected, err)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return st, fmt.Errorf("bucket %s: %w", Bucket(b.cluster), errNoBucket)
	case err != nil:
		return st, fmt.Errorf("ask for bucket %s: %w", Bucket(b.cluster), err)
	}
	info := s.CachedInfo()
	text, found := info.Config.Metadata[metadataFormat]
	number, err := strconv.Atoi(text)
	switch {
	case !found || err != nil || info.Config.MaxMsgsPerSubject != 1:
		return st, fmt.Errorf("bucket %s: %w", Bucket(b.cluster), errForeign)
	case number > format:
		return st, fmt.Errorf("bucket %s has format %d, of a newer release; this release reads format %d: update this node",
			Bucket(b.cluster), number, format)
	}
	return bucketState{created: info.Created, last: info.State.LastSeq, asked: info.TimeStamp,
		batches: info.Config.AllowAtomicPublish}, nil
}

// make makes the bucket, with one replica. An operator who wants more makes it, or changes it.
func (b *bucket) make(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if _, err := b.js.CreateKeyValue(ctx, kvConfig(b.cluster)); err != nil {
		return fmt.Errorf("make bucket %s: %w", Bucket(b.cluster), err)
	}
	return nil
}

// allowBatches lets the bucket take atomic batches. No option of a key-value bucket does, and earlier releases made it
// without.
func (b *bucket) allowBatches(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	s, err := b.js.Stream(ctx, stream(b.cluster))
	if err == nil {
		config := s.CachedInfo().Config
		config.AllowAtomicPublish = true
		_, err = b.js.UpdateStream(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("let bucket %s take batches: %w", Bucket(b.cluster), err)
	}
	return nil
}

func kvConfig(cluster string) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: Bucket(cluster), Description: "accepted files of fingerpost", History: 1,
		Metadata: map[string]string{metadataFormat: strconv.Itoa(format)},
	}
}

// msg is a message on its way into the bucket.
func (b *bucket) msg(m message) *nats.Msg {
	msg := nats.NewMsg(b.prefix + m.key)
	if msg.Data = m.value; m.value == nil {
		msg.Header.Set("KV-Operation", "DEL")
	}
	return msg
}

// A record is a message of the bucket's stream.
type record struct {
	key   string
	seq   uint64
	value []byte
	gone  bool // the key was removed
}

// Sizes of one direct get.
const (
	readMessages = 2048
	readBytes    = 2 << 20
	// fewMessages are read one by one. For a batch, the server counts the messages that are left (NumPending in its
	// filestore.go), and looks at every subject of the stream for that: a write would cost it work in proportion to the
	// number of files, for each edge.
	fewMessages = 32
)

type getRequest struct {
	Seq      uint64 `json:"seq,omitempty"`
	NextFor  string `json:"next_by_subj,omitempty"`
	LastFor  string `json:"last_by_subj,omitempty"`
	Batch    int    `json:"batch,omitempty"`
	MaxBytes int    `json:"max_bytes,omitempty"`
}

// read yields the bucket's messages from sequence from to sequence to, in order, and returns the sequence to go on
// from. Later ones may come with them. It stops early where the stream of the server that answers ends.
func (b *bucket) read(ctx context.Context, from, to uint64, yield func(record) error) (next uint64, err error) {
	take := func(r record) error {
		next = r.seq + 1
		return yield(r)
	}
	for next = from; next <= to; {
		ask := getRequest{Seq: next, NextFor: b.prefix + ">"}
		if to-next < fewMessages {
			r, found, err := b.get(ctx, ask)
			if err != nil || !found {
				return next, err
			}
			if err := take(r); err != nil {
				return next, err
			}
			continue
		}
		ask.Batch, ask.MaxBytes = readMessages, readBytes
		n, pending, err := b.getMany(ctx, ask, take)
		if err != nil || n == 0 || pending == 0 {
			return next, err
		}
	}
	return next, nil
}

// last returns the newest message of a key; found is false if there is none.
func (b *bucket) last(ctx context.Context, key string) (r record, found bool, err error) {
	r, found, err = b.get(ctx, getRequest{LastFor: b.prefix + key})
	return r, found && !r.gone, err
}

func directGet(cluster string) string { return "$JS.API.DIRECT.GET." + stream(cluster) }

// readError says which bucket an error is of.
func (b *bucket) readError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("read bucket %s: %w", Bucket(b.cluster), err)
	}
	return err
}

// get asks for one message; found is false if there is none.
func (b *bucket) get(ctx context.Context, ask getRequest) (r record, found bool, err error) {
	defer func() { err = b.readError(ctx, err) }()
	request, err := json.Marshal(ask)
	if err != nil {
		return r, false, err
	}
	connected, stop := whileConnected(ctx, b.nc)
	defer stop()
	wait, cancel := context.WithTimeout(connected, answerTime)
	defer cancel()
	m, err := b.nc.RequestWithContext(wait, directGet(b.cluster), request)
	if errors.Is(err, nats.ErrNoResponders) {
		return r, false, errNoBucket
	}
	if err != nil {
		return r, false, orCause(connected, err)
	}
	switch status := statusOf(m); status {
	case "":
		r, err = b.parse(m)
		return r, err == nil, err
	case "404":
		return r, false, nil
	default:
		return r, false, fmt.Errorf("the server answered %s %s", status, m.Header.Get("Description"))
	}
}

// getMany asks for a batch. pending is the number of messages that are left.
func (b *bucket) getMany(ctx context.Context, ask getRequest, yield func(record) error) (n int, pending uint64,
	err error) {
	defer func() { err = b.readError(ctx, err) }()
	request, err := json.Marshal(ask)
	if err != nil {
		return 0, 0, err
	}
	inbox := b.nc.NewInbox()
	sub, err := b.nc.SubscribeSync(inbox)
	if err != nil {
		return 0, 0, err
	}
	defer sub.Unsubscribe()
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return 0, 0, err
	}
	connected, stop := whileConnected(ctx, b.nc)
	defer stop()
	if err := b.nc.PublishRequest(directGet(b.cluster), inbox, request); err != nil {
		return 0, 0, err
	}
	for {
		wait, cancel := context.WithTimeout(connected, answerTime)
		m, err := sub.NextMsgWithContext(wait)
		cancel()
		if err != nil {
			return n, 0, orCause(connected, err)
		}
		switch status := statusOf(m); status {
		case "":
		case "204":
			pending, _ = strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
			return n, pending, nil
		case "404":
			return n, 0, nil
		case "503":
			return n, 0, errNoBucket
		default:
			return n, 0, fmt.Errorf("the server answered %s %s", status, m.Header.Get("Description"))
		}
		r, err := b.parse(m)
		if err != nil {
			return n, 0, err
		}
		n++
		if err := yield(r); err != nil {
			return n, 0, err
		}
	}
}

// statusOf returns the status of an answer that is no message of the stream, "" if it is one.
func statusOf(m *nats.Msg) string {
	if len(m.Data) > 0 || m.Header.Get("Nats-Sequence") != "" {
		return ""
	}
	return m.Header.Get("Status")
}

// parse reads the answer that has a message of the stream.
func (b *bucket) parse(m *nats.Msg) (r record, err error) {
	key, ours := strings.CutPrefix(m.Header.Get("Nats-Subject"), b.prefix)
	if r.seq, err = strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64); err != nil || !ours {
		return r, errors.New("the server answered without a subject and a sequence")
	}
	op := m.Header.Get("KV-Operation")
	r.key, r.value, r.gone = key, m.Data, op == "DEL" || op == "PURGE"
	return r, nil
}
