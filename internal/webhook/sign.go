package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Headers of Standard Webhooks in canonical form.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

const secretPrefix = "whsec_"

// signer signs with all of its keys.
type signer struct{ keys [][]byte }

// newSigner parses secrets in the format of Standard Webhooks. The error gives the index of the
// invalid secret, not its value.
func newSigner(secrets []string) (signer, *schema.Error) {
	if len(secrets) == 0 {
		return signer{}, schema.Errorf(schema.KindInvalidRequest, "Webhooks require a signing secret: create one with (echo -n whsec_; openssl rand -base64 32).")
	}
	var s signer
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
		if err != nil || !strings.HasPrefix(secret, secretPrefix) || len(key) < 24 || len(key) > 64 {
			return signer{}, schema.Errorf(schema.KindInvalidRequest, "Webhook secret %d is not whsec_ and 24 to 64 bytes in base64: create one with (echo -n whsec_; openssl rand -base64 32).", i+1)
		}
		s.keys = append(s.keys, key)
	}
	return s, nil
}

// sign sets the headers of one attempt. The timestamp is that of the attempt, because receivers
// refuse timestamps that are minutes old.
func (s signer) sign(h http.Header, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	var signatures []byte
	for i, key := range s.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		if i > 0 {
			signatures = append(signatures, ' ')
		}
		signatures = append(signatures, "v1,"...)
		signatures = base64.StdEncoding.AppendEncode(signatures, mac.Sum(nil))
	}
	h[headerID] = []string{id}
	h[headerTimestamp] = []string{stamp}
	h[headerSignature] = []string{string(signatures)}
}
