package ops

import (
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"fingerpost/resolver"
)

// backupStall is how long whoever takes a backup may leave it where it is.
const backupStall = time.Minute

// headerPID tells the process that a backup comes from, so that "fingerpost backup" can compare it with the one that has
// the data directory it was asked about.
const headerPID = "Fingerpost-Pid"

// backup streams an archive of the store: the files' bytes, with sealed values and key hashes, and the mail log and queue.
func (o *Server) backup(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(headerPID, strconv.Itoa(os.Getpid()))
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Time{}) // reading the store comes first, which takes as long as it is large
	out := &stream{w: w, control: control}
	switch err := o.Resolver.Backup(out); {
	case err == nil:
		o.Logger.Info("backup written", "bytes", out.n, "took", time.Since(out.begun).Round(time.Millisecond).String())
	case out.n > 0:
		o.Logger.Warn("backup cut off", "bytes", out.n, "error", err)
		panic(http.ErrAbortHandler) // the only way to tell the caller that this was not all
	case errors.Is(err, resolver.ErrBackupRuns):
		writeJSON(w, http.StatusConflict, map[string]string{"error": err.Error()})
	default:
		o.Logger.Warn("backup failed", "error", err)
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"error": err.Error()})
	}
}

// A stream sends the archive on; a caller who does not take it is cut off.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	n       int64
	begun   time.Time
}

func (s *stream) Write(p []byte) (int, error) {
	if s.n == 0 {
		s.begun = time.Now()
		s.w.Header().Set("Content-Type", "application/gzip")
	}
	s.control.SetWriteDeadline(time.Now().Add(backupStall))
	n, err := s.w.Write(p)
	s.n += int64(n)
	return n, err
}
