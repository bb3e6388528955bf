// Command oauthclient is the client for the client scenarios of the MCP conformance suite. It
// consists of a worker's session, the OAuth client of package upstream/oauth, and a browser that
// accepts every request. The last argument is the URL of the server;
// MCP_CONFORMANCE_CONTEXT may hold a client ID.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/internal/upstream"
	"github.com/callyard/callyard/internal/upstream/oauth"
)

const (
	patience = 20 * time.Second
	// The suite expects these two values.
	metadataURL = "https://conformance-test.local/client-metadata.json"
	redirectURL = "http://localhost:3000/callback"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx, os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// given is the data of a scenario that the suite passes to a client.
type given struct {
	ID        string `json:"client_id"`
	Secret    string `json:"client_secret"`
	Issuer    string `json:"issuer"`
	Key       string `json:"private_key_pem"`
	Algorithm string `json:"signing_algorithm"`
}

func run(ctx context.Context, address string) error {
	if !strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/") {
		return errors.New("this client is for the auth scenarios")
	}
	var g given
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &g); err != nil {
			return err
		}
	}
	var auth launch.Authorizer
	switch os.Getenv("MCP_CONFORMANCE_SCENARIO") {
	case "auth/client-credentials-basic", "auth/client-credentials-jwt":
		service, err := serviceFor(ctx, address, &g)
		if err != nil {
			return err
		}
		auth = service
	default:
		auth = newPerson(address, &g)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	changed := make(chan struct{}, 1)
	pool := session.Open(session.Config{
		Spec: launch.Spec{ID: "suite", Type: config.TypeHTTP, URL: address, Auth: auth}, ProbeTimeout: patience, StartTimeout: patience,
	}, nil, log, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = pool.Close(ctx)
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		if s := pool.Snapshot(); s.Error != "" && s.State != "starting" {
			return errors.New(s.Error)
		}
		if defs, _ := pool.Definitions(); defs != nil && len(defs.Tools) > 0 {
			break
		}
	}
	ended := make(chan session.Outcome, 1)
	pool.Do(&session.Request{CallID: "1", Name: "test-tool", Params: []byte("{}")}, func(_ *session.Request, o session.Outcome) { ended <- o })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case o := <-ended:
		if o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// serviceFor returns the mode oauth_service. It looks up the issuer, which an operator would
// configure.
func serviceFor(ctx context.Context, address string, g *given) (launch.Authorizer, error) {
	client := oauth.NewHTTPClient(address)
	defer client.CloseIdleConnections()
	r, err := oauth.Discover(ctx, client, address, "", oauth.Challenge{})
	if err != nil {
		return nil, err
	}
	a := &config.Auth{
		Mode: config.AuthService, Issuer: r.Server.Issuer, ClientID: g.ID, Algorithm: g.Algorithm,
		ClientSecret: config.Secret{Text: g.Secret}, Scopes: r.Scopes, Resource: r.ID,
	}
	if g.Key != "" {
		f, err := os.CreateTemp("", "key")
		if err != nil {
			return nil, err
		}
		if _, err := f.WriteString(g.Key); err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		a.PrivateKeyFile = f.Name()
	}
	return upstream.New("suite", address, a), nil
}
