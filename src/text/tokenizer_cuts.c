/* Merges of a token list that has none.
 *
 * Some files list tokens and say only in which order they are preferred. Then two neighbours merge whenever
 * their joined bytes are a token. Written out as the merges every tokenizer here has: for each token, each way
 * to cut it into two tokens, all at the token's own rank.
 */
#include "text/tokenizer.h"

bool fr_tokenizer_add_cuts(const fr_tokenizer *t, int32_t id, int32_t rank, fr_buffer *merges)
{
    const fr_token *token = &t->tokens[id];
    for (uint32_t cut = 1; cut < token->length; cut++) {
        int32_t left = fr_tokenizer_find(t, token->bytes, cut);
        int32_t right = left < 0 ? -1 : fr_tokenizer_find(t, token->bytes + cut, token->length - cut);
        fr_merge merge = {.rank = rank, .left = left, .right = right, .result = id};
        if (right >= 0)
            fr_buffer_append(merges, &merge, sizeof merge);
    }
    return !merges->failed;
}
