// Package auditlog has the operations that read the audit record: a list of what was asked,
// decided and done, the newest first, and whether the chains of the record are intact.
//
// It promises that nobody reads records of another tenant, except members of the default one,
// who operate the installation. It refuses to write or to know how a record is chained;
// internal/store/audit does. The names of its types are the names of schemas in the OpenAPI
// document.
package auditlog
