package warrant_test

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/warrant"
)

func TestKeyFileIsPrivateAndNeverOverwritten(t *testing.T) {
	dir := t.TempDir()
	path, pub := filepath.Join(dir, "k.pem"), filepath.Join(dir, "k.pub.pem")
	key := warrant.Generate()
	if err := warrant.Write(key, path, pub); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if got, err := warrant.LoadPrivate(path); err != nil || !got.Equal(key) {
		t.Errorf("the private key: %v", err)
	}
	if got, err := warrant.LoadPublic(pub); err != nil || len(got) != 1 || !got[0].Equal(key.Public()) {
		t.Errorf("the public key: %v", err)
	}
	other := filepath.Join(dir, "other.pem")
	for _, files := range [][2]string{{path, pub}, {path, other}, {other, pub}} {
		if err := warrant.Write(warrant.Generate(), files[0], files[1]); err == nil {
			t.Errorf("%v was written over", files)
		}
	}
	if got, err := warrant.LoadPrivate(path); err != nil || !got.Equal(key) {
		t.Errorf("the key has changed: %v", err)
	}
	if _, err := os.Stat(other); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a pair was written: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestConcurrentLoadOrMakeReturnsOneKey(t *testing.T) {
	dir := t.TempDir()
	path, pub := filepath.Join(dir, "k.pem"), filepath.Join(dir, "k.pub.pem")
	var mu sync.Mutex
	ids := make(map[string]int)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			key, err := warrant.LoadOrMake(path, pub)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[warrant.KeyID(public(key))]++
		})
	}
	wg.Wait()
	got, err := warrant.LoadPublic(pub)
	if err != nil || len(ids) != 1 || ids[warrant.KeyID(got[0])] != 16 {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestInvalidKeyFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := warrant.Generate()
	private, err := warrant.EncodePrivate(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := warrant.EncodePublic(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	x, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(x)
	if err != nil {
		t.Fatal(err)
	}
	xder, err := x509.MarshalPKIXPublicKey(x.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"empty": nil, "text": []byte("hello"), "public": public, "two": append(append([]byte{}, private...), private...),
		"other kind": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), "garbage": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}),
		"large": []byte(strings.Repeat("x", 100<<10)),
	} {
		if _, err := warrant.LoadPrivate(write("private "+name, text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("as a private key, %s: %v", name, err)
		}
	}
	for name, text := range map[string][]byte{
		"empty": nil, "text": []byte("hello"), "private": private, "both": append(append([]byte{}, public...), private...),
		"other kind": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: xder}), "label": pem.EncodeToMemory(&pem.Block{Type: "KEY", Bytes: []byte("x")}),
	} {
		if _, err := warrant.LoadPublic(write("public "+name, text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("as public keys, %s: %v", name, err)
		}
	}
	if _, err := warrant.LoadPrivate(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing file is no error")
	}
	if keys, err := warrant.LoadPublic(write("several", append(append([]byte{}, public...), public...))); err != nil || len(keys) != 2 {
		t.Errorf("several keys: %v", err)
	}
}
