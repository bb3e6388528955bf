// Package auditlog implements the operations that read the audit record: a list of requests,
// decisions and actions, newest first, and a check of whether the chains of the record are intact.
//
// Only members of the default tenant, who operate the installation, can read records of another
// tenant. The package does not write records or know how they are chained; internal/store/audit
// does. The names of its types are the names of schemas in the OpenAPI document.
package auditlog
