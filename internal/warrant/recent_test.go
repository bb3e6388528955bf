package warrant_test

import (
	"bytes"
	"testing"

	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/risk"
)

// The trust of a process that also signs knows the warrants signed there. It must give the same answer
// for every text as the trust of any other process.
func TestTrustWithASignerAdmitsTheSameWarrants(t *testing.T) {
	own := warrant.NewSigner(keyOf("approver"), warrant.Deciders()...).Here()
	here, elsewhere := &warrant.Trust{}, &warrant.Trust{}
	here.AddSigner(own)
	elsewhere.Add(public(keyOf("approver")), warrant.Deciders()...)
	for _, how := range warrant.Deciders() {
		good, err := own.For(how).Sign(claims(how))
		if err != nil {
			t.Fatal(err)
		}
		kept := bytes.Clone(good)
		changed := 0
		for i := range good {
			for _, bit := range []byte{1, 0x80} {
				good[i] ^= bit // also change the slice that the signer returned
				_, a := here.Admit(good, useOf(risk.ByGroups), during)
				_, b := elsewhere.Admit(good, useOf(risk.ByGroups), during)
				if a == nil || b == nil || a.Error() != b.Error() {
					t.Fatalf("%s, byte %d: here %v, elsewhere %v", how, i, a, b)
				}
				good[i] ^= bit
				changed++
			}
		}
		want := how != warrant.Caller
		// The second time, the signature is verified as in any other process.
		for range 2 {
			if _, refusal := here.Admit(kept, useOf(risk.ByGroups), during); (refusal == nil) != want {
				t.Errorf("%s, after %d others: %v", how, changed, refusal)
			}
		}
	}
}

func TestWarrantsBeyondTheSignerCacheAreAdmitted(t *testing.T) {
	own := warrant.NewSigner(keyOf("door"), warrant.Caller).Here()
	here := &warrant.Trust{}
	here.AddSigner(own)
	var all [][]byte
	for i := range 600 {
		c := claims(warrant.Caller)
		c.Issued += int64(i)
		w, err := own.Sign(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	for i, w := range all {
		if _, refusal := here.Admit(w, useOf(risk.ByCaller), during); refusal != nil {
			t.Fatalf("warrant %d: %v", i, refusal)
		}
	}
	// It is not trusted for ways that the signer does not sign for.
	if _, refusal := here.Admit(sign(t, keyOf("door"), claims(warrant.People)), useOf(risk.ByCaller), during); refusal == nil {
		t.Error("its key speaks for people")
	}
}
