package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/pkg/bus"
)

// lossFile records accepted losses permanently.
const lossFile = "losses.json"

// Loss is damage that an operator accepted.
type Loss struct {
	At      time.Time `json:"at"`
	Damages []Damage  `json:"damages"`
	// Keys are the hashes of the idempotency keys whose entries are lost.
	Keys []string `json:"keys,omitempty"`
}

// Losses returns the accepted losses of this folder, oldest first.
func (s *Server) Losses() []Loss { return s.losses }

func readLosses(dir string) ([]Loss, error) {
	text, err := os.ReadFile(filepath.Join(dir, lossFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Loss
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of accepted losses: %w; restore %s from a backup, or remove it: calls from before a loss may run again then", err, filepath.Join(dir, lossFile))
	}
	return all, nil
}

// openFolder compares the folder with its seal and removes the seal, because the folder changes
// from now on.
func (s *Server) openFolder(accept bool) error {
	var err error
	if s.losses, err = readLosses(s.dir); err != nil {
		return err
	}
	sealed, err := readSeal(s.dir)
	if errors.Is(err, errBroken) {
		s.log.Warn("the seal of the data folder cannot be read, so its files are not checked for damage", "file", filepath.Join(s.dir, sealFile))
	} else if err != nil {
		return err
	}
	s.known = len(s.losses)
	var found []Damage
	if sealed != nil {
		found, err = inspect(s.dir, sealed, s.log.Warn)
	} else {
		found, err = crashed(s.dir)
	}
	if err != nil {
		return err
	}
	if len(found) > 0 && !accept {
		return &DamageError{Dir: s.dir, Damages: found}
	}
	if len(found) > 0 {
		var keys []string // without a seal, Options.Check finds them
		if sealed != nil {
			keys = sealed.Keys
		}
		if err := s.accept(found, keys); err != nil {
			return err
		}
	}
	s.unsealed = sealed == nil
	s.before = sealed.known()
	if err := os.Remove(filepath.Join(s.dir, sealFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("opening the data folder: %w", err)
	}
	return nil
}

// accept records damage as lost and makes JetStream read the damaged streams again.
func (s *Server) accept(found []Damage, keys []string) error {
	loss := Loss{At: time.Now().UTC(), Damages: found}
	for _, d := range found {
		s.log.Error("this damage was accepted", "file", d.Path, "damage", d.String())
		if d.Stream == "" {
			continue
		}
		if d.Stream == bus.StreamKeys {
			s.lostKeys = keys
		}
		if s.s != nil || !strings.HasSuffix(d.Path, ".blk") {
			continue // the damage is in the messages, or there are no files
		}
		index := filepath.Join(s.dir, filepath.Dir(filepath.FromSlash(d.Path)), "index.db")
		if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("accepting the loss: %w", err)
		}
	}
	s.losses = append(s.losses, loss)
	return s.writeLosses()
}

func (s *Server) writeLosses() error {
	text, err := json.Marshal(s.losses)
	if err != nil {
		return fmt.Errorf("encoding the accepted losses: %w", err)
	}
	return replaceFile(filepath.Join(s.dir, lossFile), text)
}

// crossCheck runs Options.Check for a folder without a seal, after the server has started.
func (s *Server) crossCheck(o *Options) error {
	if o.Check == nil || !s.unsealed {
		return nil
	}
	var since time.Time
	for _, loss := range s.losses[:s.known] {
		since = loss.At
	}
	found, keys, err := o.Check(s, since)
	if err != nil {
		return fmt.Errorf("comparing the records in the data folder: %w", err)
	}
	if len(found) > 0 && !o.AcceptLoss {
		return &DamageError{Dir: s.dir, Damages: found}
	}
	if len(found) > 0 {
		if err := s.accept(found, nil); err != nil {
			return err
		}
	}
	for i := s.known; i < len(s.losses); i++ { // losses of this start
		for _, d := range s.losses[i].Damages {
			if d.Stream == bus.StreamKeys {
				s.losses[i].Keys = keys
			}
		}
	}
	if len(s.losses) == s.known {
		return nil
	}
	return s.writeLosses()
}

// findKeys records the lost keys after the server has started. Until then, all keys of the seal
// count as lost.
func (s *Server) findKeys() error {
	if len(s.lostKeys) == 0 {
		return nil
	}
	there, err := s.keys()
	if err != nil {
		return err
	}
	for _, key := range s.lostKeys {
		if !slices.Contains(there, key) {
			last := &s.losses[len(s.losses)-1]
			last.Keys = append(last.Keys, key)
		}
	}
	return s.writeLosses()
}

// keys returns the hashes of the idempotency keys.
func (s *Server) keys() ([]string, error) {
	nc, err := nats.Connect("", nats.InProcessServer(s.s))
	if err != nil {
		return nil, fmt.Errorf("reading the idempotency keys: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("reading the idempotency keys: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), keysTimeout)
	defer cancel()
	stream, err := js.Stream(ctx, bus.StreamKeys)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the idempotency keys: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(bus.SubjectKey+"*"))
	if err != nil {
		return nil, fmt.Errorf("reading the idempotency keys: %w", err)
	}
	all := make([]string, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		all = append(all, strings.TrimPrefix(subject, bus.SubjectKey))
	}
	slices.Sort(all)
	return all, nil
}

const keysTimeout = 5 * time.Second
