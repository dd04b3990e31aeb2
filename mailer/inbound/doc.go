// Package inbound takes the outcomes of mails that only a provider knows: an address that does not exist, a complaint, a
// recipient who has left. It puts them on the suppression lists of projects.
//
// What it promises. A caller is let in by the secret of a block, compared in a time that tells neither secrets nor
// names, before anything of its message is read. A message of SNS must be signed besides: its certificate and its
// addresses are those of the provider, it is at most an hour old, and nothing else is ever fetched. An outcome concerns
// the project whose mail log has the Message-ID of a mail to that address, or else the only project of the block; a
// project that the block does not list is never touched. Each outcome is applied once, by the provider's id, within 30
// days: a repeat brings nothing back that a person has removed. The list, its entry in the audit trail and the mark of
// the id are stored in one batch.
//
// What it needs. The declared blocks with what opens their secrets; a Ledger; Run, which forgets marks that are too old.
//
// What it does not do. It knows no HTTP status. It lists nobody for a failure that may pass. It does not find out which
// topic of SNS a block is for: anybody can make one, so the signature shows only that SNS has sent a message, and the
// secret in the address of the subscription shows for whom.
package inbound
