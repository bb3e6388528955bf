package frontdoor

import (
	"strings"

	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/pkg/schema"
)

// openCallers makes what finds out who sends a request. It asks no issuer yet, so that a
// start needs none of them, and what it makes has started nothing before the first token.
func (d *FrontDoor) openCallers() (err error) {
	c := d.o.Config
	if d.tokens, err = token.New(c.Issuers, d.o.Log); err != nil {
		return err
	}
	d.callers = callers.New(callers.Options{
		Keys: d.keys, Issuers: c.Issuers, Tokens: d.tokens, Public: strings.TrimRight(c.PublicURL, "/"), Member: d.inSet,
	})
	return nil
}

// inSet reports whether a set of tools has a tool.
func (d *FrontDoor) inSet(set string, server schema.ServerID, tool string) bool {
	return d.catalog.Sets().Has(set, server, tool)
}
