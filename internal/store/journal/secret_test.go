package journal

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func TestFrontDoorsShareOneSecret(t *testing.T) {
	all := stores(t, 4, Options{})
	for _, s := range all {
		if len(s.Secret()) != secretLen || !bytes.Equal(s.Secret(), all[0].Secret()) {
			t.Fatalf("%x and %x", s.Secret(), all[0].Secret())
		}
	}
	if other := stores(t, 1, Options{})[0]; bytes.Equal(other.Secret(), all[0].Secret()) {
		t.Error("two fabrics have one secret")
	}
}

func TestLostSecretIsRestoredFromAManifest(t *testing.T) {
	s := stores(t, 1, Options{})[0]
	m := &Manifest{Kind: Lane, Principal: schema.Principal{Name: "ann"}, Expires: time.Now().Add(time.Hour)}
	if err := s.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	was := bytes.Clone(s.secret)
	again := func() []byte {
		t.Helper()
		secret, err := s.findSecret(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	if !bytes.Equal(again(), was) {
		t.Error("a restart has another secret")
	}
	// It stands where the lease of a journal "secret" would.
	if _, revision, err := s.leases.get(t.Context(), "secret"); err != nil || s.leases.drop(t.Context(), "secret", revision) != nil {
		t.Fatal(err)
	}
	if _, _, err := s.leases.get(t.Context(), secretName); !errors.Is(err, bus.ErrNotFound) {
		t.Fatalf("the secret is still there: %v", err)
	}
	if !bytes.Equal(again(), was) {
		t.Error("the secret was made again although a manifest has it")
	}
	if stored, _, err := s.leases.get(t.Context(), secretName); err != nil || !bytes.Equal(stored, was) {
		t.Errorf("it is not stored again: %x, %v", stored, err)
	}
}
