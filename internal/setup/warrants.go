package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/callyard/callyard/internal/warrant"
)

// Signer reads the private key with which this process signs warrants for the given ways of
// deciding. It returns nil if no key is configured.
func (c *Config) Signer(may ...warrant.Decider) (*warrant.Signer, error) {
	switch {
	case c.own != nil:
		return c.own.For(may...), nil
	case c.Warrants.KeyFile == "":
		return nil, nil
	}
	key, err := warrant.LoadPrivate(c.Warrants.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("warrants.key_file: %w", err)
	}
	return warrant.NewSigner(key, may...), nil
}

// Trust reads the public keys that a worker trusts. It is empty if none is configured. The error
// lists every file that cannot be read.
func (c *Config) Trust() (*warrant.Trust, error) {
	trust, w := &warrant.Trust{}, &c.Warrants
	if c.own != nil {
		trust.AddSigner(c.own)
	}
	var faults []error
	for _, role := range [...]struct {
		key   string
		files []string
		how   warrant.Decider
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

// checkWarrants reads every key of the section. The error lists all faults.
func (c *Config) checkWarrants() error {
	_, signs := c.Signer()
	_, trusts := c.Trust()
	return errors.Join(signs, trusts)
}

// Files in the data folder of `callyard up`: its private key, and the public half for workers that
// join from other machines.
const (
	ownKey       = "warrant.pem"
	ownPublicKey = "warrant.pub.pem"
)

// OwnFiles returns the names of the files in the data folder that a start creates and that cannot be
// created again without a loss.
func (c *Config) OwnFiles() (names []string) {
	if c.Warrants.KeyFile == "" {
		names = append(names, ownKey)
	}
	if c.Webhooks.SecretsFile == "" {
		names = append(names, ownSecret)
	}
	return names
}

// unusable adds to an error why the data folder matters, and the fix.
func (c *Config) unusable(err error) error {
	return fmt.Errorf("%w. The data folder must be a folder that this process (user %d) can read and write: change the owner or the mode of %s, or set another one with --data", err, os.Getuid(), c.Data)
}

// OwnKey creates the data folder, and sets the key of a process that is front door, approver and
// worker in one: the configured key, otherwise that of the data folder, which the first start
// creates. The worker trusts it in addition to the configured keys.
func (c *Config) OwnKey() error {
	c.whole = true
	w := &c.Warrants
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return c.unusable(fmt.Errorf("creating the data folder: %w", err))
	}
	if w.KeyFile == "" {
		w.KeyFile = filepath.Join(c.Data, ownKey)
		switch _, err := warrant.LoadOrMake(w.KeyFile, filepath.Join(c.Data, ownPublicKey)); {
		case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
			return c.unusable(err)
		case err != nil:
			return fmt.Errorf("%w.\nRestore the file from a backup. If there is none, remove it and start once with --accept-loss: a new key is created, and what the old key signed is no longer trusted", err)
		}
	}
	key, err := warrant.LoadPrivate(w.KeyFile)
	if err != nil {
		_, others := c.Trust()
		return errors.Join(fmt.Errorf("warrants.key_file: %w", err), others)
	}
	c.own = warrant.NewSigner(key, warrant.Deciders()...).Here()
	return c.checkWarrants()
}
