"""What files of language models call their tensors, and the operator that attends over a cache."""

from __future__ import annotations

import re

TOKENS, POSITIONS, MASK, LOGITS = "input_ids", "position_ids", "attention_mask", "logits"
SEEN, TOTAL = "seqlens_k", "total_sequence_length"
PAST = re.compile(r"past_key_values\.(\d+)\.(key|value)")
MICROSOFT = "com.microsoft"
ATTENTION = "GroupQueryAttention"
VIEWS = frozenset({"Unsqueeze", "Squeeze", "Expand", "Reshape", "Transpose", "Identity", "Cast"})
