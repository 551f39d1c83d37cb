/* frontier/frontier.h: all of the library, for programs.
 *
 * The library is a stack of modules, each with one header that is also its manual. Read them from the bottom up:
 *
 *     base    errors, memory, files, random numbers, threads, configuration, the charged clock
 *     text    from files to rows of token ids: import, tokenizer, corpus, loader, the built-in world
 *     graph   tensors, operators, autograd, memory plans
 *     cpu     runs a plan on this machine
 *     model   a GPT from a recipe; checkpoints; inference engine; other programs' files in frontier/formats.h
 *     eval    bits per byte; CORE in frontier/core.h; probes in frontier/causality.h, frontier/scan.h
 *     neuron  a NeuronCore: memories, instructions, rules, time (needs base alone)
 *     train   optimizers and the loop against the clock
 *     http    a small server; the completions endpoint
 *
 * A module includes only modules above it in this list (scripts/check-layers.sh enforces it), so a program that only
 * needs tokens links no model code.
 */
#ifndef FRONTIER_FRONTIER_H
#define FRONTIER_FRONTIER_H

#include "frontier/base.h"
#include "frontier/causality.h"
#include "frontier/core.h"
#include "frontier/cpu.h"
#include "frontier/eval.h"
#include "frontier/formats.h"
#include "frontier/graph.h"
#include "frontier/http.h"
#include "frontier/model.h"
#include "frontier/text.h"
#include "frontier/neuron.h"
#include "frontier/scan.h"
#include "frontier/train.h"

#endif
