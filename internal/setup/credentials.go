package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Credentials opens the stored credentials of people, on the connection of a front door or an
// approver, with the data keys of tenants. It returns nil if no server uses credentials of people.
// Close it with [credential.Book.Close], and close ring after it.
func (c *Config) Credentials(ctx context.Context, conn *bus.Conn, ring *datakey.Ring, log *slog.Logger) (*credential.Book, error) {
	s := &c.File.Credentials
	if len(s.Servers) == 0 {
		return nil, nil
	}
	keys, err := credential.LoadKeys(s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("credentials.key_file: %w", err)
	}
	a := &c.Approver
	connect := strings.TrimSuffix(cmp.Or(s.ConnectURL, a.PublicURL, listen.Scheme(a.CertFile)+"://"+a.Listen), "/")
	servers := make([]*credential.Server, len(s.Servers))
	for i := range s.Servers {
		servers[i] = credentialServer(&s.Servers[i], connect)
	}
	book, err := credential.Open(ctx, conn, keys, ring, servers, connect, log)
	if err != nil {
		return nil, fmt.Errorf("opening the credentials of people: %w", err)
	}
	return book, nil
}

// DataKeys opens the data keys of tenants, on the connection of a front door or an approver. It
// returns nil if nothing is encrypted. Close it with [datakey.Ring.Close].
func (c *Config) DataKeys(ctx context.Context, conn *bus.Conn, rewrap bool, log *slog.Logger) (*datakey.Ring, error) {
	file := c.File.Encryption.KeyFile
	if file == "" {
		return nil, nil
	}
	keys, err := credential.LoadKeys(file)
	if err != nil {
		return nil, fmt.Errorf("encryption.key_file: %w", err)
	}
	ring, err := datakey.Open(ctx, conn, keys, rewrap, log)
	if err != nil {
		return nil, fmt.Errorf("opening the data keys of tenants: %w", err)
	}
	return ring, nil
}

func credentialServer(e *settings.CredentialServer, connect string) *credential.Server {
	s := &credential.Server{ID: schema.ServerID(e.Name), URL: e.URL, Header: cmp.Or(e.Header, "Authorization"), Scheme: e.Scheme}
	if e.Kind == settings.CredentialKey {
		if e.Header == "" && e.Scheme == "" {
			s.Scheme = "Bearer"
		}
		return s
	}
	s.Scheme, s.Scopes = "Bearer", e.Scopes
	s.OAuth = &oauth.Client{ID: e.ClientID, Issuer: e.Issuer, RedirectURL: credential.CallbackURL(connect, s.ID), Name: "Callyard", HTTP: oauth.NewHTTPClient(e.URL, e.Issuer)}
	if e.Kind == settings.CredentialExchange {
		s.Exchange = &credential.Exchange{Audience: e.Audience, ConsentURL: e.ConsentURL}
		if e.Audience == "" {
			s.Exchange.Resource = e.URL
		}
	} else if strings.HasPrefix(connect, "https://") {
		s.OAuth.MetadataURL = connect + credential.ClientPath
	}
	if file := e.ClientSecretFile; file != "" {
		s.OAuth.Secret = func() (string, error) {
			text, err := os.ReadFile(file)
			if err != nil { // people see this error, so it names no local path
				return "", errors.New("the client secret of the server cannot be read")
			}
			return strings.TrimRight(string(text), "\r\n"), nil
		}
	}
	return s
}
