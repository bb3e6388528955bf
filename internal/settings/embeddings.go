package settings

import (
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/telemetry"
)

// Embeddings is the endpoint for vectors that rank tools in searches, in addition to words.
type Embeddings struct {
	// URL is the base address of an OpenAI-compatible API, such as https://api.openai.com/v1.
	// /embeddings is appended. If empty, searches use words only.
	URL string `yaml:"url"`
	// Model is the name of the model.
	Model string `yaml:"model"`
	// Key, or the content of KeyFile, is sent as a bearer token. The file is read at each use.
	Key     telemetry.Secret `yaml:"key"`
	KeyFile string           `yaml:"key_file"`
	// MinSimilarity is the lowest cosine, from 0 to 1, at which a tool matches a query. It depends on
	// the model.
	MinSimilarity float64 `yaml:"min_similarity"`
}

// EmbeddingsDefaults returns the default section.
func EmbeddingsDefaults() Embeddings { return Embeddings{MinSimilarity: 0.4} }

// Configured reports whether an endpoint is set.
func (c Embeddings) Configured() bool { return c.URL != "" }

// Secret returns the key, or "" if none is set.
func (c Embeddings) Secret() (string, error) { return secret(c.Key, c.KeyFile) }

func (c Embeddings) validate(faults *config.Collector) {
	if !c.Configured() {
		if c.Model != "" || c.Key != "" || c.KeyFile != "" {
			faults.Addf("embeddings.url", "is missing: set the base address of the API, such as https://api.openai.com/v1, or omit the section.")
		}
		return
	}
	if u, ok := urls.Secure(c.URL); !ok || u.RawQuery != "" {
		faults.Addf("embeddings.url", "must be an https URL without a query; http is allowed for loopback only.")
	}
	if c.Model == "" {
		faults.Addf("embeddings.model", "is missing: name the model, such as text-embedding-3-small.")
	}
	if c.Key != "" && c.KeyFile != "" {
		faults.Addf("embeddings.key_file", "and key are both set; keep one.")
	}
	if c.MinSimilarity < 0 || c.MinSimilarity > 1 {
		faults.Addf("embeddings.min_similarity", "must be from 0 to 1.")
	}
}
