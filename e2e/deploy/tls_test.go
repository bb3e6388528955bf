package deploy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// certificates creates a CA and one certificate of it for 127.0.0.1, for servers and
// clients, and returns their files.
func certificates(t testing.TB) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	put := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
		return path
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &authority.PublicKey, authority)
	must(err)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "callyard"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &own.PublicKey, authority)
	must(err)
	ownDER, err := x509.MarshalPKCS8PrivateKey(own)
	must(err)
	return put("ca.pem", "CERTIFICATE", rootDER), put("cert.pem", "CERTIFICATE", leafDER), put("key.pem", "PRIVATE KEY", ownDER)
}

func TestTLSRejectsUnknownClients(t *testing.T) {
	ca, cert, key := certificates(t)
	config := filepath.Join(t.TempDir(), "nats.conf")
	// An include is relative to the including file.
	write(t, config, read(t, natsFile(t, "nats-server.conf")))
	for _, name := range []string{"accounts.conf", "permissions.conf", "tls.conf"} {
		write(t, filepath.Join(filepath.Dir(config), name), read(t, natsFile(t, name)))
	}
	write(t, config, read(t, config)+"\ninclude ./tls.conf\n")

	f := openFabric(t, config, "tls",
		[]string{"CALLYARD_NATS_CERT=" + cert, "CALLYARD_NATS_KEY=" + key, "CALLYARD_NATS_CA=" + ca},
		"CALLYARD_NATS_CA_FILE="+ca, "CALLYARD_NATS_CERT_FILE="+cert, "CALLYARD_NATS_KEY_FILE="+key)
	f.works(t)

	// A password alone is not enough.
	for name, opts := range map[string][]nats.Option{
		"without TLS":           nil,
		"without a certificate": {nats.RootCAs(ca)},
	} {
		nc, err := nats.Connect("nats://"+f.natsAddress, append(opts, nats.UserInfo("worker", "worker"))...)
		if err == nil {
			nc.Close()
			t.Errorf("%s somebody came in", name)
		}
	}
	f.stop(t)
	f.clean(t)
}
