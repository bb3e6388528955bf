package warrant_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/internal/warrant/warranttest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const definition = `{"name":"send-é","inputSchema":{"type":"object"}}`

// keyOf returns a key that is the same in every run.
func keyOf(name string) ed25519.PrivateKey {
	seed := bytes.Repeat([]byte(name), ed25519.SeedSize)
	return ed25519.NewKeyFromSeed(seed[:ed25519.SeedSize])
}

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func claims(how warrant.Decider) warrant.Claims {
	return warrant.Claims{
		ApprovalID: "appr_01jd0000000000000000000000", CallID: "call_01jd0000000000000000000000", Server: "payments", Tool: "send-é",
		ToolDefinitionDigest: schema.Digest([]byte(definition)), ArgumentsDigest: schema.Digest([]byte(warranttest.JSON)),
		Requester: "agent-key", Owner: "Ana's team", Level: 2, PolicyVersion: "sha256:policy", How: how,
		Issued: 1_795_000_000_000, Deadline: 1_795_000_600_000, Requirement: ruleOf(how).Requirement().String(),
	}
}

// ruleOf returns the rule under which a call was approved in that way.
func ruleOf(how warrant.Decider) *risk.Approval {
	if how == warrant.Caller {
		return &risk.Approval{By: risk.ByCaller, Needed: 1}
	}
	return &risk.Approval{By: risk.ByGroups, Groups: []string{"finance"}, Needed: 2}
}

func sign(t testing.TB, key ed25519.PrivateKey, c warrant.Claims) []byte {
	t.Helper()
	w, err := warrant.NewSigner(key, warrant.Deciders()...).Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Warrants are stored with approvals and exchanged between versions, so a change of the golden file
// needs a new version byte.
func TestWarrantFormatMatchesTheGoldenFile(t *testing.T) {
	got := hex.Dump(sign(t, keyOf("approver"), claims(warrant.People)))
	path := filepath.Join("testdata", "warrant-2.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-golden +now):\n%s", diff)
	}
}

// Workers are upgraded before the approver, and must run calls that the old approver signs.
func TestWarrantOfThePreviousReleaseIsRead(t *testing.T) {
	dump, err := os.ReadFile(filepath.Join("testdata", "warrant-1.golden"))
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for line := range strings.Lines(string(dump)) {
		digits, _, _ := strings.Cut(line[8:], "|")
		b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, b...)
	}
	got, refusal := trust().Admit(text, useOf(risk.ByGroups), during)
	if refusal != nil {
		t.Fatal(refusal)
	}
	want := claims(warrant.People)
	want.KeyID, want.Requirement = warrant.KeyID(public(keyOf("approver"))), ""
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("(-signed +read):\n%s", diff)
	}
	// With the current version byte, these bytes were never signed.
	text[0] = 2
	if _, refusal := trust().Admit(text, useOf(risk.ByGroups), during); refusal == nil {
		t.Error("another version of it counts")
	}
}

func TestClaimsRoundTrip(t *testing.T) {
	for _, how := range warrant.Deciders() {
		want := claims(how)
		got, err := warrant.Parse(sign(t, keyOf("k"), want))
		if err != nil {
			t.Fatal(err)
		}
		want.KeyID = warrant.KeyID(public(keyOf("k")))
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s (-signed +read):\n%s", how, diff)
		}
	}
}

func TestUnencodableClaimsAreNotSigned(t *testing.T) {
	for name, change := range map[string]func(*warrant.Claims){
		"no way of deciding":    func(c *warrant.Claims) { c.How = "" },
		"an unknown way":        func(c *warrant.Claims) { c.How = "magic" },
		"level 0":               func(c *warrant.Claims) { c.Level = 0 },
		"level 4":               func(c *warrant.Claims) { c.Level = 4 },
		"no arguments digest":   func(c *warrant.Claims) { c.ArgumentsDigest = "" },
		"no definition digest":  func(c *warrant.Claims) { c.ToolDefinitionDigest = "" },
		"digest in capitals":    func(c *warrant.Claims) { c.ArgumentsDigest = "sha256:" + strings.ToUpper(c.ArgumentsDigest[7:]) },
		"another digest":        func(c *warrant.Claims) { c.ArgumentsDigest = "sha512:" + c.ArgumentsDigest[7:] },
		"a digest cut short":    func(c *warrant.Claims) { c.ArgumentsDigest = c.ArgumentsDigest[:69] },
		"over before it begins": func(c *warrant.Claims) { c.Deadline = c.Issued - 1 },
		"before 1970":           func(c *warrant.Claims) { c.Issued = -1 },
		"a long name":           func(c *warrant.Claims) { c.Tool = strings.Repeat("x", 5000) },
		"long names": func(c *warrant.Claims) {
			c.Tool, c.Server = strings.Repeat("x", 2000), schema.ServerID(strings.Repeat("x", 2000))
		},
		"no requirement":     func(c *warrant.Claims) { c.Requirement = "" },
		"a name over 64 KiB": func(c *warrant.Claims) { c.Tool = strings.Repeat("x", 1<<16) },
	} {
		c := claims(warrant.People)
		change(&c)
		if w, err := warrant.NewSigner(keyOf("k"), warrant.Deciders()...).Sign(c); err == nil {
			t.Errorf("%s was signed: %x", name, w)
		}
	}
}

func TestSignerRefusesClaimsOutsideItsScope(t *testing.T) {
	door := warrant.NewSigner(keyOf("door"), warrant.Deciders()...).For(warrant.Caller, warrant.Standing)
	if _, err := door.Sign(claims(warrant.People)); err == nil {
		t.Error("a front door signed for people")
	}
	for _, how := range []warrant.Decider{warrant.Caller, warrant.Standing} {
		if _, err := door.Sign(claims(how)); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
}

// Every warrant has exactly one encoding. Parsing arbitrary bytes neither panics nor accepts a second
// encoding of a warrant.
func FuzzParse(f *testing.F) {
	for _, how := range warrant.Deciders() {
		good := sign(f, keyOf("k"), claims(how))
		f.Add(good)
		f.Add(good[:len(good)-1])
		f.Add(append(bytes.Clone(good), 0))
	}
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Add(bytes.Repeat([]byte{1}, 200))
	signer := warrant.NewSigner(keyOf("k"), warrant.Deciders()...)
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		c, err := warrant.Parse(text)
		if !bytes.Equal(before, text) {
			t.Fatal("reading changed the bytes")
		}
		if err != nil {
			if c != nil {
				t.Fatal("claims beside an error")
			}
			return
		}
		if text[0] == 1 {
			return // version 1 is read, but never written
		}
		again, err := signer.Sign(*c)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		// Except for the key id and the signature, the bytes must be identical.
		if len(again) != len(text) || !bytes.Equal(again[:83], text[:83]) || !bytes.Equal(again[93:len(again)-64], text[93:len(text)-64]) {
			t.Fatalf("two forms of one warrant:\n%x\n%x", text, again)
		}
	})
}
