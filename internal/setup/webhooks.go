package setup

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ownSecret is the file of the data folder that holds the secret of webhooks.
const ownSecret = "webhooks.secret"

// OwnSecret sets the secret of webhooks for a process without a configured one. It is read from the
// data folder, which [Config.OwnKey] has created and where the first start creates it. Receivers
// need it to verify deliveries.
func (c *Config) OwnSecret() error {
	if c.Webhooks.SecretsFile != "" {
		return nil
	}
	c.Webhooks.SecretsFile = filepath.Join(c.Data, ownSecret)
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	f, err := os.OpenFile(c.Webhooks.SecretsFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return c.unusable(fmt.Errorf("creating the webhook secret: %w", err))
	}
	_, err = f.WriteString("whsec_" + base64.StdEncoding.EncodeToString(random[:]) + "\n")
	return errors.Join(err, f.Close())
}
