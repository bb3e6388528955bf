package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/callyard/callyard/internal/warrant"
)

// Warrants is the section warrants: with which key this process signs that an
// approved call may run, and whose signatures count at a worker.
type Warrants struct {
	// KeyFile is the private key with which a front door signs what callers
	// confirm, and an approver what people decide. Each has its own.
	KeyFile string `yaml:"key_file"`
	// PeopleKeys, CallerKeys and StandingKeys are files of public keys that a
	// worker trusts: to say that people said yes, that the caller itself did, and
	// that somebody had said yes before to calls like this one.
	PeopleKeys   []string `yaml:"people_keys"`
	CallerKeys   []string `yaml:"caller_keys"`
	StandingKeys []string `yaml:"standing_keys"`

	own *warrant.Signer // trusted for everything; see [Config.OwnKey]
}

// signer reads the private key; nil where none is named.
func (w *Warrants) signer(may ...warrant.How) (*warrant.Signer, error) {
	switch {
	case w.own != nil:
		return w.own.For(may...), nil
	case w.KeyFile == "":
		return nil, nil
	}
	key, err := warrant.LoadPrivate(w.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("warrants.key_file: %w", err)
	}
	return warrant.NewSigner(key, may...), nil
}

// trust reads the public keys; it is empty where none is named. The error lists
// every file that cannot be read.
func (w *Warrants) trust() (*warrant.Trust, error) {
	trust := &warrant.Trust{}
	if w.own != nil {
		trust.AddSigner(w.own)
	}
	var faults []error
	for _, role := range [...]struct {
		key   string
		files []string
		how   warrant.How
	}{{"people_keys", w.PeopleKeys, warrant.People}, {"caller_keys", w.CallerKeys, warrant.Caller}, {"standing_keys", w.StandingKeys, warrant.Standing}} {
		for _, file := range role.files {
			keys, err := warrant.LoadPublic(file)
			if err != nil {
				faults = append(faults, fmt.Errorf("warrants.%s: %w", role.key, err))
			}
			for _, key := range keys {
				trust.Add(key, role.how)
			}
		}
	}
	return trust, errors.Join(faults...)
}

// Check reads every key that the section names. The error lists all faults.
func (w *Warrants) Check() error {
	_, signs := w.signer()
	_, trusts := w.trust()
	return errors.Join(signs, trusts)
}

// The key of `callyard up`, in its data folder, and its public half, for workers
// that join from elsewhere.
const (
	ownKey       = "warrant.pem"
	ownPublicKey = "warrant.pub.pem"
)

// OwnKey gives a process that is front door, approver and worker in one a key
// for all of it: the one that the configuration names, else that of the data
// folder, which is made at the first start. The worker trusts it beside those
// that the configuration names.
func (c *Config) OwnKey() error {
	c.whole = true
	w := &c.Warrants
	if w.KeyFile == "" {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return fmt.Errorf("making the data directory: %w", err)
		}
		w.KeyFile = filepath.Join(c.Data, ownKey)
		if _, err := warrant.LoadOrMake(w.KeyFile, filepath.Join(c.Data, ownPublicKey)); err != nil {
			return err
		}
	}
	key, err := warrant.LoadPrivate(w.KeyFile)
	if err != nil {
		_, others := w.trust()
		return errors.Join(fmt.Errorf("warrants.key_file: %w", err), others)
	}
	w.own = warrant.NewSigner(key, warrant.Hows()...).Here()
	return w.Check()
}
