package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// stalled is how long a server may take for its next bytes; before the first ones it has to read the whole store.
const stalled = 2 * time.Minute

// Backup copies a backup of a running server's store to w. ops is the address of its ops listener, which needs no key;
// pid is the process that must answer, 0 for any.
func Backup(ctx context.Context, w io.Writer, ops string, pid int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(ops, "/")+"/backup", nil)
	if err != nil {
		return err
	}
	watch := time.AfterFunc(10*stalled, func() { cancel(errors.New("the server does not answer")) })
	defer watch.Stop()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w (is that the server's ops listener? see --ops-url)", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", ops, refusal(res))
	}
	if got, _ := strconv.Atoi(res.Header.Get("Fingerpost-Pid")); pid != 0 && got != pid {
		return fmt.Errorf("%s is another server's ops listener, of process %d: give --ops-url", ops, got)
	}
	if _, err := io.Copy(w, watchedReader{res.Body, watch}); err != nil {
		return fmt.Errorf("the backup from %s was cut off: %w", ops, err)
	}
	return nil
}

// refusal returns the reason in an answer, or its status.
func refusal(res *http.Response) string {
	var body struct {
		Error string `json:"error"`
	}
	if json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&body) == nil && body.Error != "" {
		return res.Status + ": " + body.Error
	}
	return res.Status
}

// A watchedReader restarts the watchdog at each read.
type watchedReader struct {
	r     io.Reader
	watch *time.Timer
}

func (p watchedReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.watch.Reset(stalled)
	return n, err
}
