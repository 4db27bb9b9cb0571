// Package fake is backend/memory under a seeded fault plan: a store for tests
// that does on demand what a real one does on a bad day.
package fake
