package issued

import (
	"crypto/sha256"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/kit/base62"
)

func digest(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

func TestSecretFormatDetectsEveryChange(t *testing.T) {
	id := IDOf("ci")
	secret := newSecret(id)
	if got, ok := parse(secret); !ok || got != id || len(secret) != length || !Looks(secret) {
		t.Fatalf("%q: %q %t", secret, got, ok)
	}
	if newSecret(id) == secret || IDOf("ci ") == id {
		t.Error("two are one")
	}
	for i := range secret {
		for _, c := range "0aZ_" {
			if wrong := secret[:i] + string(c) + secret[i+1:]; wrong != secret {
				if _, ok := parse(wrong); ok {
					t.Errorf("digit %d as %c is taken", i, c)
				}
			}
		}
		if _, ok := parse(secret[:i]); ok {
			t.Errorf("%d characters are taken", i)
		}
	}
	configured, _ := authn.Generate()
	for _, other := range []string{configured, "", "cyk_", "Bearer " + secret, "eyJ.eyJ.x", strings.ToLower(prefix) + strings.Repeat("x", 60)} {
		if Looks(other) {
			t.Errorf("%q looks like one", other)
		}
	}
}

func FuzzSecretParsesOnlyWithValidChecksum(f *testing.F) {
	f.Add(newSecret(IDOf("ci")))
	f.Add("cyk_000000000000_")
	f.Add("cyk_\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00_" + strings.Repeat("0", 38))
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := parse(text)
		if !ok {
			return
		}
		if !Looks(text) || len(id) != idDigits || !strings.HasPrefix(text, prefix+id+"_") || text != text[:sumAt]+base62.Encode(uint64(crc32.ChecksumIEEE([]byte(text[:sumAt]))), sumDigits) {
			t.Fatalf("%q is taken as %q", text, id)
		}
	})
}
