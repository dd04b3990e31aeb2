package ops

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
)

// ProofFile is the file in the data folder whose content proves that a caller is root or the service's user: the ops
// listener cannot know which user of the machine asks it. ProofHeader carries the content.
const (
	ProofFile   = "ops.proof"
	ProofHeader = "X-Ops-Proof"
)

// NewProof writes a new proof into the data folder, mode 0600, and returns it.
func NewProof(dir string) (string, error) {
	proof := rand.Text()
	path := filepath.Join(dir, ProofFile)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) { // it may be a link, or have another mode
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(proof)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return proof, err
}

// signIn answers POST /console-link with links that sign one person in, once.
func (o *Server) signIn(w http.ResponseWriter, r *http.Request) {
	given := r.Header.Get(ProofHeader)
	switch {
	case o.SignIn == nil:
		http.Error(w, "there are no sign-in links here: an edge has none, and a data folder that cannot be written "+
			"gives none", http.StatusConflict)
		return
	case o.Proof == "" || subtle.ConstantTimeCompare([]byte(given), []byte(o.Proof)) != 1:
		http.Error(w, "the proof is not that of this server: ask with the --data that it was started with",
			http.StatusForbidden)
		return
	}
	links := o.SignIn()
	if len(links) == 0 {
		http.Error(w, "there is no console here (--console)", http.StatusConflict)
		return
	}
	o.Logger.Info("a link that signs in to the console was asked for")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string][]string{"links": links}) // to a client that has gone
}
