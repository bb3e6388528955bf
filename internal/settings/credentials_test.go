package settings

import (
	"strings"
	"testing"
)

func TestTokenExchangeRequiresIssuerAndClient(t *testing.T) {
	good := CredentialServer{Name: "erp", URL: "https://erp.example/mcp", Kind: CredentialExchange, Issuer: "https://login.example", ClientID: "callyard", Audience: "erp", ConsentURL: "https://login.example/consent"}
	of := func(change func(s *CredentialServer)) string {
		c := Credentials{KeyFile: "/run/key", Servers: []CredentialServer{good}}
		change(&c.Servers[0])
		text := ""
		for _, f := range c.Validate() {
			text += f.Path + " " + f.Message + "\n"
		}
		return text
	}
	if faults := of(func(*CredentialServer) {}); faults != "" {
		t.Errorf("a good one: %s", faults)
	}
	for want, change := range map[string]func(s *CredentialServer){
		"are required":                func(s *CredentialServer) { s.ClientID = "" },
		"servers[0].issuer":           func(s *CredentialServer) { s.Issuer = "" },
		"tokens are sent in":          func(s *CredentialServer) { s.Header = "X-Api-Key" },
		"servers[0].consent_url":      func(s *CredentialServer) { s.ConsentURL = "http://login.example" },
		"no audience and consent_url": func(s *CredentialServer) { s.Kind = CredentialOAuth },
		"must be an https URL":        func(s *CredentialServer) { s.Issuer = "http://login.example" },
	} {
		if faults := of(change); !strings.Contains(faults, want) {
			t.Errorf("%q is not among %q", want, faults)
		}
	}
}
