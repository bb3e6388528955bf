package settings_test

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/settings"
)

func TestFaultsOfIssuersAreFound(t *testing.T) {
	_, hash := authn.Generate()
	good := func() settings.FrontDoor {
		c := settings.FrontDoorDefaults()
		c.Listen, c.PublicURL = "0.0.0.0:8080", "https://door.example/yard"
		c.Issuers = []settings.Issuer{{Name: "corp", Issuer: "https://idp.example"}}
		return c
	}
	if faults := good().Validate(); len(faults) != 0 {
		t.Fatalf("%v", faults)
	}
	for name, c := range map[string]struct {
		change func(*settings.FrontDoor)
		path   string
	}{
		"no public URL":         {func(c *settings.FrontDoor) { c.PublicURL = "" }, "public_url"},
		"a public URL in clear": {func(c *settings.FrontDoor) { c.PublicURL = "http://door.example" }, "public_url"},
		"a public URL, query":   {func(c *settings.FrontDoor) { c.PublicURL = "https://door.example/?a=1" }, "public_url"},
		"a public URL, quote":   {func(c *settings.FrontDoor) { c.PublicURL = `https://door.example/"` }, "public_url"},
		"no name":               {func(c *settings.FrontDoor) { c.Issuers[0].Name = "" }, "issuers[0].name"},
		"a colon in the name":   {func(c *settings.FrontDoor) { c.Issuers[0].Name = "a:b" }, "issuers[0].name"},
		"the name of people":    {func(c *settings.FrontDoor) { c.Issuers[0].Name = "oidc" }, "issuers[0].name"},
		"an issuer in clear":    {func(c *settings.FrontDoor) { c.Issuers[0].Issuer = "http://idp.example" }, "issuers[0].issuer"},
		"keys in clear":         {func(c *settings.FrontDoor) { c.Issuers[0].JWKSURL = "http://idp.example/keys" }, "issuers[0].jwks_url"},
		"two places of keys": {func(c *settings.FrontDoor) {
			c.Issuers[0].JWKSURL, c.Issuers[0].JWKSFile = "https://idp.example/keys", "f"
		}, "issuers[0].jwks_file"},
		"a symmetric algorithm":  {func(c *settings.FrontDoor) { c.Issuers[0].Algorithms = []string{"ES256", "HS256"} }, "issuers[0].algorithms"},
		"no algorithm":           {func(c *settings.FrontDoor) { c.Issuers[0].Algorithms = []string{"none"} }, "issuers[0].algorithms"},
		"any JWT":                {func(c *settings.FrontDoor) { c.Issuers[0].Types = []string{"JWT"} }, "issuers[0].require_claims"},
		"a claim without values": {func(c *settings.FrontDoor) { c.Issuers[0].RequireClaims = map[string][]string{"a": nil} }, "issuers[0].require_claims"},
		"an empty audience":      {func(c *settings.FrontDoor) { c.Issuers[0].Audiences = []string{""} }, "issuers[0].audiences"},
		"an unknown scope":       {func(c *settings.FrontDoor) { c.Issuers[0].Scopes = []string{"tools:write"} }, "issuers[0].scopes"},
		"twice the name": {func(c *settings.FrontDoor) {
			c.Issuers = append(c.Issuers, settings.Issuer{Name: "corp", Issuer: "https://b.example"})
		}, "issuers[1].name"},
		"twice the issuer": {func(c *settings.FrontDoor) {
			c.Issuers = append(c.Issuers, settings.Issuer{Name: "b", Issuer: "https://idp.example"})
		}, "issuers[1].issuer"},
		"a key with the name of a principal": {func(c *settings.FrontDoor) { c.Keys = []authn.Key{{Name: "corp:ann", Hash: hash}} }, "keys[0].name"},
	} {
		door := good()
		c.change(&door)
		faults := door.Validate()
		if len(faults) != 1 || faults[0].Path != c.path {
			t.Errorf("%s: %v, want one fault at %s", name, faults, c.path)
		}
	}
	door := good()
	door.Issuers[0].Types, door.Issuers[0].RequireClaims = []string{"JWT"}, map[string][]string{"typ": {"Bearer"}}
	if faults := door.Validate(); len(faults) != 0 || !strings.HasPrefix(door.PublicURL, "https") {
		t.Errorf("%v", faults)
	}
}
